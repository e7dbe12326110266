# Compiles the C files of zlib and libbpf again and again, into many sets of objects, so that
# the build outlasts any measurement. make runs in the folder that takes the objects;
# SOURCES is the folder of the sources.
#
# Not optimised: a compile unit then takes 0.1 to 0.3 s of virtual time, which makes the number of
# objects a fine measure of what the build got.

ROUNDS := 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 \
          21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40
CFLAGS := -O0 -w -DHAVE_UNISTD_H -I$(SOURCES)/zlib -I$(SOURCES)/libbpf/src -I$(SOURCES)/libbpf/include \
          -I$(SOURCES)/libbpf/include/uapi -I$(SOURCES)/libelf
UNITS  := $(sort $(notdir $(basename $(wildcard $(SOURCES)/zlib/*.c $(SOURCES)/libbpf/src/*.c))))

vpath %.c $(SOURCES)/zlib $(SOURCES)/libbpf/src

all: $(foreach round,$(ROUNDS),$(UNITS:%=$(round)-%.o))

define compile
$(1)-%.o: %.c
	$(CC) $(CFLAGS) -c -o $$@ $$<
endef
$(foreach round,$(ROUNDS),$(eval $(call compile,$(round))))

.PHONY: all
