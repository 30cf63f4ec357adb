import { compileRule } from '@sluice/screen/rule'
import { TextScreen } from '@sluice/screen/screen'
import { expect, test } from 'vitest'
import { MemoryAllocation, RequestMemory } from '../../limits/request-memory.ts'
import { KnownTexts } from './known-texts.ts'

const rule = compileRule('r', { words: ['x'] })
const screen = new TextScreen([{ rule, do: 'block' }])
const other = new TextScreen([{ rule, do: 'redact' }])
const [ANN, BEA] = [
  { client: 1, key: 10 },
  { client: 2, key: 20 },
] as const
const memory = (): RequestMemory =>
  new RequestMemory(
    () => 1024,
    () => performance.now(),
  )
const text = (content: string): Buffer => Buffer.from(JSON.stringify(content.padEnd(200, '.')))

test('a text counts as already checked only for the same user, the same guards and the same format (JSON or plain text)', () => {
  const known = new KnownTexts(memory())
  const [ann, bea] = [known.of(ANN), known.of(BEA)]
  const name = ann.nameOf(screen, text('a'), 'text') ?? ''
  expect(ann.has(name)).toBe(false)
  ann.add(name)
  expect(ann.has(name)).toBe(true)
  expect(ann.nameOf(screen, text('a'), 'text')).toBe(name)
  expect(bea.has(name)).toBe(false)
  const others = [
    ann.nameOf(other, text('a'), 'text'),
    ann.nameOf(screen, text('a'), 'json'),
    ann.nameOf(screen, text('b'), 'text'),
  ]
  for (const one of others) expect(ann.has(one ?? '')).toBe(false)
  expect(ann.nameOf(screen, Buffer.from('"short"'), 'text')).toBeUndefined()
})

test('of the texts that guards have checked, those used last are remembered, up to a maximum per user and for all users', () => {
  const known = new KnownTexts(memory(), { maxOfUser: 3, maxTexts: 5 })
  const [ann, bea] = [known.of(ANN), known.of(BEA)]
  for (const name of ['a', 'b', 'c']) ann.add(name)
  expect(ann.has('a')).toBe(true)
  ann.add('d')
  expect(['a', 'b', 'c', 'd'].map((name) => ann.has(name))).toEqual([true, false, true, true])
  for (const name of ['e', 'f', 'g']) bea.add(name)
  expect(known.size).toBe(5)
  // A share is two and a half texts: with a third one, the user's oldest gives way.
  expect(['e', 'f', 'g'].map((name) => bea.has(name))).toEqual([false, true, true])
  expect(['a', 'c', 'd'].filter((name) => ann.has(name))).toHaveLength(3)
  bea.add('g')
  expect(known.size).toBe(5)
})

test("remembered checked texts count against their user's memory share until they are forgotten", () => {
  const shared = memory()
  const known = new KnownTexts(shared, { maxOfUser: 3, maxTexts: 5 })
  const [ann, bea] = [known.of(ANN), known.of(BEA)]
  ann.add('a')
  const one = shared.usedBy(ANN.client)
  expect(one).toBeGreaterThan(100)
  for (const name of ['a', 'b', 'c', 'd', 'e']) ann.add(name)
  expect(shared.usedBy(ANN.client)).toBe(3 * one)
  for (const name of ['f', 'g', 'h', 'i']) bea.add(name)
  expect([shared.usedBy(ANN.client), shared.usedBy(BEA.client)]).toEqual([3 * one, 2 * one])
  expect(shared.held).toBe(known.size * one)
})

test('no further checked texts are remembered while the memory share of their user is used up', () => {
  const shared = memory()
  const ann = new KnownTexts(shared).of(ANN)
  const bodies = new MemoryAllocation(ANN)
  const pieces = [64 * 1024 * 1024, 1024 * 1024, 64 * 1024, 1024, 64, 1]
  for (const bytes of pieces) while (shared.take(bodies, bytes));
  const small: MemoryAllocation[] = []
  for (let one = new MemoryAllocation(ANN); shared.take(one, 160); one = new MemoryAllocation(ANN))
    small.push(one)
  ann.add('a')
  expect(ann.has('a')).toBe(false)
  shared.give(bodies, bodies.bytes)
  ann.add('a')
  expect(ann.has('a')).toBe(true)
})
