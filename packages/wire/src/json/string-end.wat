;; Reads a JSON string in steps of sixteen bytes. A sequence with a backslash that the end of a step would cut
;; is left to the next one, so that nothing is carried over. `tools/assemble.mjs` makes string-end-module.ts
;; of this file.
(module
  (memory (export "memory") 2)

  ;; Reads from one of the string's characters on. Returns the offset of the closing quote. Where there is
  ;; none, returns the bitwise complement of an offset up to which the string is well-formed: less than sixteen
  ;; bytes before `to`, or else less than sixteen bytes before the mistake. Neither offset is within an escape
  ;; sequence.
  (func (export "stringEnd") (param $from i32) (param $to i32) (result i32)
    ;; Masks of sixteen bits, one for each byte.
    (local $marks i32)
    (local $quotes i32)
    (local $backslashes i32)
    (local $controls i32)
    (local $escaped i32)
    (local $unicode i32)
    (local $hex i32)
    (local $mask i32)
    (local $bad i32)
    ;; Number of bytes that are read in this step.
    (local $size i32)
    (local $bytes v128)
    ;; Classes of each byte: bits that its lower and its upper half have in common. Bits 0 to 3 say that it may
    ;; follow a backslash (`"` and `/`, `\`, `bfn`, `rtu`), bits 4 and 5 that it is a hexadecimal digit.
    (local $classes v128)

    (loop $step
      (if (i32.lt_u (i32.sub (local.get $to) (local.get $from)) (i32.const 16))
        (then (return (i32.xor (local.get $from) (i32.const -1)))))
      (local.set $bytes (v128.load align=1 (local.get $from)))

      ;; No control character, quote or backslash: skip all.
      (if (i32.eqz (local.tee $marks (i8x16.bitmask (v128.or (v128.or
            (i8x16.lt_u (local.get $bytes) (i8x16.splat (i32.const 0x20)))
            (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x22))))
            (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x5c)))))))
        (then
          (local.set $from (i32.add (local.get $from) (i32.const 16)))
          (br $step)))

      ;; First of them a quote: return its place.
      (if (i32.and
            (local.tee $quotes (i8x16.bitmask (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x22)))))
            (i32.and (local.get $marks) (i32.sub (i32.const 0) (local.get $marks))))
        (then (return (i32.add (local.get $from) (i32.ctz (local.get $marks))))))
      (local.set $backslashes
        (i8x16.bitmask (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x5c)))))
      (local.set $controls
        (i32.xor (i32.xor (local.get $marks) (local.get $quotes)) (local.get $backslashes)))

      ;; Backslashes that begin a sequence, and the bytes that follow these: the subtraction carries through a
      ;; run of backslashes, so that its ends differ by whether it begins at an odd or an even place.
      (local.set $size (i32.shr_u
        (i32.and
          (local.tee $escaped (i32.xor
            (i32.sub
              (i32.or (i32.shl (local.get $backslashes) (i32.const 1)) (i32.const 0xaaaaaaaa))
              (local.get $backslashes))
            (i32.const 0xaaaaaaaa)))
          (local.get $backslashes))
        (i32.const 15)))
      (local.set $size (i32.sub (i32.const 16) (local.get $size)))
      (local.set $escaped (i32.xor (local.get $escaped) (local.get $backslashes)))

      ;; "\u": its four digits, unless some of them belong to the next step.
      (if (local.tee $mask (i32.and
            (local.tee $unicode (i32.and
              (i8x16.bitmask (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x75))))
              (local.get $escaped)))
            (i32.const 0xf000)))
        (then (local.set $size (i32.sub (i32.ctz (local.get $mask)) (i32.const 1)))))
      (local.set $classes (v128.and
        (i8x16.swizzle
          (v128.const i8x16 0x10 0x30 0x3d 0x30 0x38 0x38 0x34 0x10 0x10 0x10 0x00 0x00 0x02 0x00 0x04 0x01)
          (v128.and (local.get $bytes) (i8x16.splat (i32.const 0x0f))))
        (i8x16.swizzle
          (v128.const i8x16 0x00 0x00 0x01 0x10 0x20 0x02 0x24 0x08 0 0 0 0 0 0 0 0)
          (i8x16.shr_u (local.get $bytes) (i32.const 4)))))
      (local.set $hex (i8x16.bitmask (i8x16.ne
        (v128.and (local.get $classes) (i8x16.splat (i32.const 0x30)))
        (i8x16.splat (i32.const 0)))))
      (local.set $bad (i32.or
        (i32.or
          (i32.and
            (i32.xor
              (i32.and
                (i32.and
                  (i32.and
                    (i32.shr_u (local.get $hex) (i32.const 1))
                    (i32.shr_u (local.get $hex) (i32.const 2)))
                  (i32.shr_u (local.get $hex) (i32.const 3)))
                (i32.shr_u (local.get $hex) (i32.const 4)))
              (i32.const -1))
            (local.get $unicode))
          (i32.and
            (i32.xor
              (i8x16.bitmask (i8x16.ne
                (v128.and (local.get $classes) (i8x16.splat (i32.const 0x0f)))
                (i8x16.splat (i32.const 0))))
              (i32.const -1))
            (local.get $escaped)))
        (local.get $controls)))

      ;; The first end of the string, or mistake, of this step.
      (local.set $mask (i32.sub (i32.shl (i32.const 1) (local.get $size)) (i32.const 1)))
      (if (i32.eqz (local.tee $marks (i32.and
            (i32.or
              (i32.and (local.get $quotes) (i32.xor (local.get $escaped) (i32.const -1)))
              (local.get $bad))
            (local.get $mask))))
        (then
          (local.set $from (i32.add (local.get $from) (local.get $size)))
          (br $step)))
      (if (i32.and
            (local.get $bad)
            (i32.and (local.get $marks) (i32.sub (i32.const 0) (local.get $marks))))
        (then (return (i32.xor (local.get $from) (i32.const -1)))))
      (return (i32.add (local.get $from) (i32.ctz (local.get $marks)))))
    unreachable))
