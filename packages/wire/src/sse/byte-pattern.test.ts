import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BytePattern } from './frame-template.ts'

test('bytes are found at their position, whatever their length, and whatever follows the buffer’s end', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 40 }),
      fc.nat(20),
      fc.nat(20),
      fc.option(fc.nat(39)),
      (pattern, before, after, changed) => {
        const memory = Buffer.concat([Buffer.alloc(before, 1), pattern, Buffer.alloc(after, 2)])
        const end = before + pattern.length
        const known = new BytePattern(Buffer.from(pattern))
        expect(known.endIn(memory, before)).toBe(end)
        expect(known.endIn(memory.subarray(before), 0)).toBe(pattern.length)
        // The buffer continues after the end of a read.
        if (pattern.length > 0) expect(known.endIn(memory.subarray(0, end - 1), before)).toBe(-1)
        if (changed === null || changed >= pattern.length) return
        memory[before + changed] = (memory[before + changed] as number) ^ 0x80
        expect(known.endIn(memory, before)).toBe(-1)
      },
    ),
    { numRuns: 500 },
  )
})
