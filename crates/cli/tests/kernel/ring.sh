# SPDX-License-Identifier: GPL-2.0
# A token goes round ten, a hundred and a thousand classes.
ring 5000 10 100 1000 | while read -r ns; do echo "REPORT hop_ns $ns"; done
echo "REPORT state $(state)"
kill $scheduler
wait $scheduler
