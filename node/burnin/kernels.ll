; The kernels that test memory, as LLVM's intermediate code; kernels.ptx is made from it. Each thread takes every word
; of 8 bytes that is as many words away as there are threads. The word at an index that counts from "first" is to be
; index * multiplier + seed. forewarm_check adds to found[0] how many words differ, and brings found[1] down to the
; least index of one.
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
define void @forewarm_fill(i64 addrspace(1)* %p, i64 %words, i64 %first, i64 %multiplier, i64 %seed) {
entry:
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %g = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %b64 = zext i32 %b to i64
  %n64 = zext i32 %n to i64
  %t64 = zext i32 %t to i64
  %g64 = zext i32 %g to i64
  %m = mul i64 %b64, %n64
  %i0 = add i64 %m, %t64
  %step = mul i64 %g64, %n64
  br label %head
head:
  %i = phi i64 [%i0, %entry], [%i1, %body]
  %done = icmp uge i64 %i, %words
  br i1 %done, label %exit, label %body
body:
  %w = add i64 %i, %first
  %wm = mul i64 %w, %multiplier
  %v = add i64 %wm, %seed
  %a = getelementptr i64, i64 addrspace(1)* %p, i64 %i
  store volatile i64 %v, i64 addrspace(1)* %a
  %i1 = add i64 %i, %step
  br label %head
exit:
  ret void
}
define void @forewarm_check(i64 addrspace(1)* %p, i64 %words, i64 %first, i64 %multiplier, i64 %seed, i64 addrspace(1)* %found) {
entry:
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %g = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %b64 = zext i32 %b to i64
  %n64 = zext i32 %n to i64
  %t64 = zext i32 %t to i64
  %g64 = zext i32 %g to i64
  %m = mul i64 %b64, %n64
  %i0 = add i64 %m, %t64
  %step = mul i64 %g64, %n64
  %least = getelementptr i64, i64 addrspace(1)* %found, i64 1
  br label %head
head:
  %i = phi i64 [%i0, %entry], [%i1, %next]
  %done = icmp uge i64 %i, %words
  br i1 %done, label %exit, label %body
body:
  %w = add i64 %i, %first
  %wm = mul i64 %w, %multiplier
  %v = add i64 %wm, %seed
  %a = getelementptr i64, i64 addrspace(1)* %p, i64 %i
  %r = load volatile i64, i64 addrspace(1)* %a
  %same = icmp eq i64 %r, %v
  br i1 %same, label %next, label %bad
bad:
  %o1 = atomicrmw add i64 addrspace(1)* %found, i64 1 monotonic
  %o2 = atomicrmw umin i64 addrspace(1)* %least, i64 %w monotonic
  br label %next
next:
  %i1 = add i64 %i, %step
  br label %head
exit:
  ret void
}
!nvvm.annotations = !{!0, !1}
!0 = !{void (i64 addrspace(1)*, i64, i64, i64, i64)* @forewarm_fill, !"kernel", i32 1}
!1 = !{void (i64 addrspace(1)*, i64, i64, i64, i64, i64 addrspace(1)*)* @forewarm_check, !"kernel", i32 1}
