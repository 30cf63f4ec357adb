import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyEdits } from './json-edit.ts'
import { scanObject } from './json-scan.ts'
import { lawRuns } from '../../../../test/runner/tier.ts'

function edited(source: string, remove: string[], replace: Record<string, string> = {}): string {
  const bytes = Buffer.from(source)
  return applyEdits(bytes, scanObject(bytes), {
    remove,
    replace: new Map(Object.entries(replace)),
  }).toString()
}

test('removing a member of a JSON object also removes one comma beside it', () => {
  expect(edited('{"a":1,"b":2,"c":3}', ['a'])).toBe('{"b":2,"c":3}')
  expect(edited('{"a":1,"b":2,"c":3}', ['b'])).toBe('{"a":1,"c":3}')
  expect(edited('{"a":1,"b":2,"c":3}', ['c'])).toBe('{"a":1,"b":2}')
  expect(edited('{"a":1,"b":2,"c":3}', ['b', 'c'])).toBe('{"a":1}')
  expect(edited('{ "a" : 1 , "b" : 2 }', ['a', 'b'])).toBe('{  }')
})

test('setting a JSON member replaces its value in place, or adds it at the end', () => {
  expect(edited('{ "a" : 1 , "b":[2] }', [], { a: '{}' })).toBe('{ "a" : {} , "b":[2] }')
  expect(edited('{"a":1}', [], { b: 'true' })).toBe('{"a":1,"b":true}')
  expect(edited('{}', [], { b: 'true', c: '2' })).toBe('{"b":true,"c":2}')
  expect(edited('{"a":1 }', ['a'], { b: '2' })).toBe('{ "b":2}')
  expect(edited('{"a":1,"b":2}', ['b'], { c: '3' })).toBe('{"a":1,"c":3}')
})

test('an edit of a JSON object that changes nothing returns the given Buffer itself', () => {
  const bytes = Buffer.from('{"a":1}')
  expect(applyEdits(bytes, scanObject(bytes), { remove: ['b'], replace: new Map() })).toBe(bytes)
})

test('an edited JSON object has the change, and each of its other members keeps its bytes', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd', 'model', 'é"')
  const json = fc.jsonValue({ maxDepth: 2 })
  fc.assert(
    fc.property(
      fc.dictionary(key, json),
      fc.uniqueArray(key),
      fc.dictionary(key, json),
      fc.nat(2),
      (object, remove, replacements, indent) => {
        const bytes = Buffer.from(` ${JSON.stringify(object, null, indent)}\n`)
        const scan = scanObject(bytes)
        const replace = new Map(Object.entries(replacements).map(([k, v]) => [k, JSON.stringify(v)]))
        const result = applyEdits(bytes, scan, { remove, replace })
        const expected = { ...object }
        for (const k of remove) delete expected[k]
        Object.assign(expected, replacements)
        expect(JSON.parse(result.toString())).toEqual(JSON.parse(JSON.stringify(expected)))
        const after = scanObject(result)
        for (const [k, member] of scan.members) {
          if ((remove as string[]).includes(k) || replace.has(k)) continue
          const kept = after.span(k)
          expect(kept && result.subarray(kept.keyStart, kept.end)).toEqual(
            bytes.subarray(member.keyStart, member.end),
          )
        }
      },
    ),
    { numRuns: lawRuns(1000) },
  )
})
