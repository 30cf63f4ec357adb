import { describe, expect, test } from 'vitest'
import { KnownFrameTemplates } from './frame-loop.ts'

/** A frame of one kind among many. */
const frame = (kind: number | string, text: string): Buffer =>
  Buffer.from(`data: ${JSON.stringify({ kind, text })}\n\n`)

/** Learns templates from frames and counts the attempts. */
class Stream {
  looks = 0
  readonly #known = new KnownFrameTemplates((data) => {
    this.looks++
    return { index: 0, text: (JSON.parse(data) as { text: string }).text }
  })

  learn(...kinds: (number | string)[]): this {
    for (const kind of kinds) {
      const bytes = frame(kind, 'earlier')
      this.#known.learn(bytes, bytes.toString().slice('data: '.length, -2))
    }
    return this
  }

  forget(): this {
    this.#known.reset()
    return this
  }

  textOf(bytes: Buffer): string | undefined {
    return this.#known.match(bytes, 0)?.textIn(bytes)
  }

  knows(kind: number | string): boolean {
    return this.textOf(frame(kind, 'now')) === 'now'
  }
}

describe('templates of a stream’s frames', () => {
  test.each(['', 'words', 'naïve "詩"\n\\', '\u0000'])(
    'a stream frame that equals an earlier frame except for its text is read by the template of that frame: %j',
    (text) => {
      const bytes = Buffer.concat([frame('a', text), frame('b', 'next')])
      expect(new Stream().learn('a').textOf(bytes)).toBe(text)
    },
  )

  test('a frame that differs from a template in more than its text, is cut off or has an invalid escape is not read by the template', () => {
    const stream = new Stream().learn('a')
    expect(stream.knows('b')).toBe(false)
    expect(stream.textOf(frame('a', 'now').subarray(0, -1))).toBeUndefined()
    expect(stream.textOf(Buffer.from('data: {"kind":"a","text":"\\x"}\n\n'))).toBeUndefined()
  })

  test.each([
    ['in a string', (padding: string) => `data: {"text":"now","obfuscation":"${padding}"}\n\n`, 'x'],
    ['of spaces', (padding: string) => `data: {"text":"now"${padding}}\n\n`, ' '],
  ])(
    'a stream frame matches the template of an earlier frame whatever length its padding %s has',
    (_, padded, filler) => {
      const known = new KnownFrameTemplates((data) => ({
        index: 0,
        text: (JSON.parse(data) as { text: string }).text,
      }))
      const first = padded(filler.repeat(3))
      known.learn(Buffer.from(first), first.slice('data: '.length, -2))
      for (const length of [0, 1, 50]) {
        const bytes = Buffer.from(padded(filler.repeat(length)))
        expect(known.match(bytes, 0)?.end).toBe(bytes.length)
      }
      // The bytes after the text are not padding.
      expect(known.match(Buffer.from(padded(`${filler}","more":"`)), 0)).toBeUndefined()
      expect(known.match(Buffer.from(padded('\\u0020')), 0)).toBeUndefined()
    },
  )

  test.each([
    ['count up', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]],
    ['gain digits twice', Array.from({ length: 120 }, (_, i) => i + 5)],
    ['jump', [7, 8, 9, 20, 21, 22, 3, 4, 4, 4, 5, 6, 99, 100]],
    ['stay as they are', Array.from({ length: 30 }, () => 7)],
  ])(
    'stream frames with sequence numbers match one template in succession if the numbers %s',
    (_, numbers) => {
      const numbered = (number: number, text: string): string =>
        `data: ${JSON.stringify({ kind: 'x', sequence_number: number, text, logprobs: [] })}\n\n`
      const known = new KnownFrameTemplates((data) => ({
        index: 0,
        text: (JSON.parse(data) as { text: string }).text,
      }))
      const first = numbered(1, 'earlier')
      known.learn(Buffer.from(first), first.slice('data: '.length, -2))
      const texts = numbers.map((number) => `"${number}"`.repeat(number % 3))
      const bytes = Buffer.from(numbers.map((number, i) => numbered(number, texts[i] ?? '')).join(''))
      const seen: (string | undefined)[] = []
      for (let at = 0; at < bytes.length; ) {
        const match = known.match(bytes, at)
        seen.push(match?.textIn(bytes))
        at = match?.end ?? bytes.length
      }
      expect(seen).toEqual(texts)
      known.newBytes()
      const others = Buffer.from(`${numbered(1, 'a')}${numbered(2, 'b').replace('x', 'y').repeat(9)}`)
      expect(known.match(others, 0)?.end).toBe(numbered(1, 'a').length)
      expect(known.match(others, numbered(1, 'a').length)).toBeUndefined()
    },
  )

  test('a stream keeps templates for four kinds of frames, and a fifth one replaces the oldest', () => {
    const stream = new Stream().learn(1, 2, 3, 4)
    expect([1, 2, 3, 4].map((kind) => stream.knows(kind))).toEqual([true, true, true, true])
    stream.learn(5)
    expect([1, 2, 3, 4, 5].map((kind) => stream.knows(kind))).toEqual([false, true, true, true, true])
  })

  test('a stream stops making frame templates after eight of them in succession were never used', () => {
    const stream = new Stream().learn(1, 2, 3, 4, 5, 6, 7, 8)
    expect(stream.knows(8)).toBe(false)
    const { looks } = stream
    stream.learn(9, 9, 9)
    expect(stream.looks).toBe(looks)
    expect(stream.knows(9)).toBe(false)
  })

  test('the use of one frame template lets a stream make further templates, because it resets the count of unused ones', () => {
    const stream = new Stream().learn(1, 2, 3, 4, 5, 6, 7)
    expect(stream.knows(7)).toBe(true)
    stream.learn(8, 9, 10, 11, 12, 13, 14)
    expect(stream.knows(14)).toBe(true)
  })

  test('a stream whose templates are reset forgets earlier frames, and may make templates again even if it had stopped', () => {
    const stream = new Stream().learn(1).forget()
    expect(stream.knows(1)).toBe(false)
    stream.learn(1, 2, 3, 4, 5, 6, 7, 8).forget().learn(9)
    expect(stream.knows(9)).toBe(true)
  })
})
