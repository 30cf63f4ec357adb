import { subscribe } from 'node:diagnostics_channel'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { afterAll, expect, test, vi } from 'vitest'
import { cutTextToCount, TokenCounter } from './token-counter.ts'

const threads: Worker[] = []
subscribe('worker_threads', (message) => void threads.push((message as { readonly worker: Worker }).worker))
const WATCH = { failed() {}, started() {} }
const count = new TokenCounter(0, WATCH)
afterAll(() => count.close())

test('texts whose tokens are charged are counted before other texts', async () => {
  /** Counts texts of both kinds. `hasHalted`: the first count ended before the charged texts were passed. */
  const counted = async () => {
    const order: string[] = []
    const noting = (name: string) => (): void => void order.push(name)
    const long = 'apple '.repeat(2_000)
    const told = ['told 1', 'told 2', 'told 3'].map((name) => count.countLowPriority(long).then(noting(name)))
    await setImmediate()
    const hasHalted = order.length > 0
    const charged = ['charged 1', 'charged 2'].map((name) => count.count('apple').then(noting(name)))
    await Promise.all([...told, ...charged])
    return { order, hasHalted }
  }
  let last = await counted()
  while (last.hasHalted) last = await counted()
  // The first count was already running.
  expect(last.order).toEqual(['told 1', 'charged 1', 'charged 2', 'told 2', 'told 3'])
})

test('a token counter that is closed before its thread has started starts none, and estimates the text', async () => {
  const before = threads.length
  const closed = new TokenCounter(0, WATCH)
  const counted = closed.count('eight of')
  await closed.close()
  expect([await counted, threads.length]).toEqual([2, before])
})

test('short texts of one turn of the event loop are sent to the tokenizer thread in one message', async () => {
  await count.count('warm')
  const posted = vi.spyOn(Worker.prototype, 'postMessage')
  const texts = Array.from({ length: 20 }, (_, i) => 'apple '.repeat(i + 1).trimEnd())
  const counts = await Promise.all(texts.map((text) => count.countLowPriority(text)))
  expect(counts).toEqual(texts.map((_, i) => i + 1))
  expect(posted).toHaveBeenCalledOnce()
  posted.mockRestore()
})

test('the token counter reports that it is busy while 32 texts are being counted or wait', async () => {
  const counts = Array.from({ length: 31 }, (_, i) =>
    i % 2 ? count.count('a') : count.countLowPriority('a'),
  )
  expect(count.isBusy).toBe(false)
  counts.push(count.count('a'))
  expect(count.isBusy).toBe(true)
  expect(await Promise.all(counts)).toEqual(Array.from({ length: 32 }, () => 1))
  expect(count.isBusy).toBe(false)
})

test('texts that are being counted when the tokenizer thread ends are estimated by length, and others are counted', async () => {
  const cut = async (): Promise<number[]> => {
    const counts = [count.count('x'.repeat(400_000)), count.countLowPriority('apple apple')]
    await setImmediate()
    await threads.at(-1)?.terminate()
    return Promise.all(counts)
  }
  // By its length, the second text would have three. A thread that ends late has counted the first one.
  await expect.poll(cut).toEqual([100_000, 2])
})

test('an empty text has no tokens', async () => {
  expect(await count.count('')).toBe(0)
})

/** Estimates the number of letters of a text from its pieces. */
const lettersOf = (text: string, offset: number): number => {
  const { pieces, factor } = cutTextToCount(text, offset)
  return pieces.join('').replaceAll(' ', '').length * factor
}

test('a text of up to 256,000 characters is counted completely', () => {
  const text = 'a'.repeat(256_000)
  const { pieces, factor } = cutTextToCount(text, 0.3)
  expect([pieces.join('') === text, factor]).toEqual([true, 1])
  expect(cutTextToCount('', 0.3).pieces).toEqual([])
})

test.each([0, 0.25, 0.5, 0.99])(
  'the token count of a text above 256,000 characters is right wherever in the text its words are: offset %d',
  (offset) => {
    const [spaces, words] = [' '.repeat(256_000), 'a'.repeat(744_000)]
    const middle = spaces.slice(0, 128_000) + words + spaces.slice(128_000)
    for (const text of [spaces + words, words + spaces, middle]) {
      const letters = lettersOf(text, offset)
      expect(letters).toBeGreaterThan(744_000 * 0.95)
      expect(letters).toBeLessThan(744_000 * 1.05)
    }
  },
)

test('at most 132 pieces of 2,000 characters are tokenized of a text, however long it is', () => {
  for (const length of [256_001, 1_000_000, 33_000_000]) {
    const { pieces } = cutTextToCount('a'.repeat(length), 0.7)
    expect(pieces.length).toBeGreaterThan(120)
    expect(pieces.length).toBeLessThanOrEqual(132)
  }
})

test('the tokenized pieces of a long text are spread over all of it, with gaps of at most 40,000 characters', () => {
  const text = Array.from({ length: 1_000 }, (_, n) => String(n).padStart(2_000)).join('')
  const numbers = cutTextToCount(text, 0.7).pieces.map(Number)
  const gaps = numbers.slice(1).map((number, n) => number - (numbers[n] as number))
  expect(Math.max(...gaps)).toBeLessThanOrEqual(20)
})

test('counting a longer version of a text reuses most pieces of the shorter one', () => {
  const piece = (n: number): string => String(n).padStart(2_000)
  const text = Array.from({ length: 200 }, (_, n) => piece(n)).join('')
  const before = cutTextToCount(text, 0.4).pieces
  const after = new Set(cutTextToCount(text + piece(200) + piece(201), 0.4).pieces)
  expect(before.filter((one) => after.has(one)).length).toBeGreaterThan(before.length * 0.9)
})
