(* Trees, closures, floats and strings. *)
module M = Map.Make (String)
type tree = Leaf | Node of tree * int * tree
let rec insert x = function
  | Leaf -> Node (Leaf, x, Leaf)
  | Node (l, y, r) as t -> if x < y then Node (insert x l, y, r) else if x > y then Node (l, y, insert x r) else t
let rec depth = function Leaf -> 0 | Node (l, _, r) -> 1 + max (depth l) (depth r)
let next s = (s * 1103515245 + 12345) land 0x3fffffff
let () =
  let rounds = int_of_string Sys.argv.(1) in
  let total = ref 0 and sum = ref 0.0 in
  for round = 1 to rounds do
    let s = ref round and t = ref Leaf and m = ref M.empty in
    for _ = 1 to 2000 do
      s := next !s;
      t := insert (!s lsr 8) !t;
      let key = string_of_int (!s mod 300) in
      m := M.update key (function None -> Some 1 | Some n -> Some (n + 1)) !m;
      sum := !sum +. sqrt (float_of_int !s)
    done;
    let sorted = List.sort compare (List.map snd (M.bindings !m)) in
    total := !total + depth !t + List.fold_left ( + ) 0 sorted
  done;
  Printf.printf "%d %g\n" !total !sum
