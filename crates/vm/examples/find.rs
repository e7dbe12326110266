use andante_vm::*;
fn main(){
 let c=Cache::open().unwrap();
 let t=std::time::Instant::now();
 let p=|s:&str| eprintln!("{:.1} {s}", t.elapsed().as_secs_f64());
 match (KernelSearch{refresh:std::env::args().nth(1).is_some(),..Default::default()}).find(&c,&p) {Ok(k)=>println!("{k:#?}"),Err(e)=>println!("{e}")}
 for n in [1,2] { match find_qemu(&c,n,&p) {Ok(k)=>println!("{k:?}"),Err(e)=>println!("{e}")} }
 p("done");
}
