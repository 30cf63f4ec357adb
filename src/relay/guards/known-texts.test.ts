import { expect, test } from 'vitest'
import { compileRule } from '../../redaction/rule.ts'
import { Screen } from '../../redaction/screen.ts'
import { KnownTexts } from './known-texts.ts'

const rule = compileRule('r', { words: ['x'] })
const screen = new Screen([{ rule, do: 'block' }])
const other = new Screen([{ rule, do: 'redact' }])
const text = (content: string): Buffer => Buffer.from(JSON.stringify(content.padEnd(200, '.')))

test('a checked text is remembered for one user, the same guards and the same kind of text', () => {
  const known = new KnownTexts()
  const [ann, bea] = [known.of(1), known.of(2)]
  const name = ann.nameOf(screen, text('a'), false) ?? ''
  expect(ann.has(name)).toBe(false)
  ann.add(name)
  expect(ann.has(name)).toBe(true)
  expect(ann.nameOf(screen, text('a'), false)).toBe(name)
  expect(bea.has(name)).toBe(false)
  const others = [
    ann.nameOf(other, text('a'), false),
    ann.nameOf(screen, text('a'), true),
    ann.nameOf(screen, text('b'), false),
  ]
  for (const one of others) expect(ann.has(one ?? '')).toBe(false)
  expect(ann.nameOf(screen, Buffer.from('"short"'), false)).toBeUndefined()
})

test('beyond the maximum, the least recently used checked texts of a user, and of all users, are forgotten', () => {
  const known = new KnownTexts({ maxOfUser: 3, maxTexts: 5 })
  const [ann, bea] = [known.of(1), known.of(2)]
  for (const name of ['a', 'b', 'c']) ann.add(name)
  expect(ann.has('a')).toBe(true)
  ann.add('d')
  expect(['a', 'b', 'c', 'd'].map((name) => ann.has(name))).toEqual([true, false, true, true])
  for (const name of ['e', 'f', 'g']) bea.add(name)
  expect(known.size).toBe(5)
  expect(['e', 'f', 'g'].map((name) => bea.has(name))).toEqual([true, true, true])
  expect(['a', 'c', 'd'].filter((name) => ann.has(name))).toHaveLength(2)
  bea.add('g')
  expect(known.size).toBe(5)
})
