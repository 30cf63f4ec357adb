import process from 'node:process'
import { expect, test } from 'vitest'
import { filesWithin, mayBeFile, readingsOf, type ValueKind, withFiles } from './files-in-values.ts'

const NOTHING = { mediaType: '', name: '' }
const KINDS: readonly ValueKind[] = ['text', 'term', 'sealed', 'media']

function finished<Result>(steps: Generator<unknown, Result>): Result {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** The texts that guards check in a value. */
function textsIn(value: string, kind: ValueKind): string[] {
  const read = readingsOf(value, kind).flatMap((reading) => finished(reading(value, NOTHING))?.text ?? [])
  return [...read, ...[...filesWithin(value, kind)].flatMap((file) => file?.text ?? [])]
}

test('a value that has no file of text within it is read as it stands, unless only its maker can read it', () => {
  for (const kind of ['text', 'term', 'media'] as const)
    expect(textsIn('any text, of any kind', kind)).toContain('any text, of any kind')
  expect(textsIn('any text, of any kind', 'sealed')).toEqual(['any text, of any kind'])
  expect(textsIn('EtsBCkgIBhABGAIiQDYv', 'sealed')).toEqual([])
})

test('a value at a place for media that is base64 of nothing known is read as it stands, because it may be a key', () => {
  const key = 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789'
  expect(textsIn(key, 'media')).toContain(key)
})

const WORD = Buffer.from('The code is 4711 x.').toString('base64')
test.each([
  `Read ${WORD} and answer`,
  `(${WORD})`,
  `\`${WORD}\`, please`,
  `\\n${WORD}\\n`,
  `${'x, '.repeat(4000)}${WORD}`,
  'See data:text/plain,The%20code%20is%204711%20x. please',
  '{"a":"data:text/plain,%54he%20code%20is%204711%20x."}',
  `{"a":"data:;base64,${WORD.replace('V', '%56')}"}`,
])('a file of text between other words is read: %j', (value) => {
  const json = Buffer.from(JSON.stringify(value))
  expect(mayBeFile(json, { from: 0, to: json.length, kind: 'text' })).toBe(true)
  expect(textsIn(value, 'text').some((text) => text.includes('The code is 4711 x.'))).toBe(true)
})

test.each(KINDS)('a long value is searched for files in steps (%s)', (kind) => {
  const value = 'Any "text", of words. '.repeat(10_000)
  const seen = [...filesWithin(value, kind)]
  expect(seen.length).toBeGreaterThan(value.length / 10_000)
})

/** The time of a value of eight times the size; quadratic time would be 64 times as long. */
const MAX_GROWTH = 40

test.each(KINDS)('reading a value takes linear time (%s)', (kind) => {
  const hostile = [
    (size: number) => ' '.repeat(size) + '!',
    (size: number) => 'a'.repeat(size) + '!',
    (size: number) => 'data:'.repeat(size / 5),
    (size: number) => `data:${';'.repeat(size)}`,
    (size: number) => `"${'data:,'.repeat(size / 6)} %`,
    (size: number) => 'data:;base64,%'.repeat(size / 14),
    (size: number) => `"${'a/'.repeat(size / 2)}`,
    (size: number) => '\\'.repeat(size),
    (size: number) => '"\\\\'.repeat(size / 3),
    (size: number) => `${'a'.repeat(60)}\n`.repeat(size / 61) + '!',
    (size: number) => '='.repeat(size),
    (size: number) => 'data:;base64,'.repeat(size / 13),
    (size: number) => `data:${'base64 '.repeat(size / 7)}`,
    (size: number) => 'a.'.repeat(size / 2),
    (size: number) => 'YWFhYWFhYWFhYWFhYWFh.'.repeat(size / 21),
  ]
  // CPU time, in milliseconds, which does not depend on what else the machine does.
  const timeOf = (value: string): number => {
    const began = process.cpuUsage()
    textsIn(value, kind)
    const { user, system } = process.cpuUsage(began)
    return (user + system) / 1000
  }
  for (const make of hostile) {
    const [short, long] = [make(50_000), make(400_000)]
    const shortMs = Math.min(...[1, 2, 3].map(() => timeOf(short)))
    // Garbage of other tests may be collected meanwhile, so a long time is measured again.
    let growth = Infinity
    for (let round = 0; round < 3 && growth >= MAX_GROWTH; round += 1)
      growth = Math.min(growth, timeOf(long) / (shortMs + 1))
    expect(growth).toBeLessThan(MAX_GROWTH)
  }
})

test('files within a value are written in their places', () => {
  const data = (text: string): string => Buffer.from(text).toString('base64')
  const value = JSON.stringify({
    a: data('the first letter'),
    b: [`data:text/plain;base64,${data('a second letter')}`],
  })
  const changes = [...filesWithin(value, 'text')]
    .filter((file) => file !== undefined)
    .map((file) => ({
      ...file,
      written: file.write(file.text.toUpperCase()),
    }))
  expect(withFiles(value, changes)).toBe(
    JSON.stringify({ a: data('THE FIRST LETTER'), b: [`data:text/plain;base64,${data('A SECOND LETTER')}`] }),
  )
})

const MANY = 12_000_000
const BASE64 = Buffer.from('The code is 4711 x. '.repeat(12)).toString('base64')
test.each([
  ['a string of JSON that is base64', 'text', `{"a":"${BASE64.repeat(MANY / 320)}"}`],
  ['a data URL in a text', 'text', `see data:text/plain;base64,${BASE64.repeat(MANY / 320)} there`],
  ['a word', 'text', `see: ${BASE64.repeat(MANY / 320)} there`],
  ['lines', 'text', `see:\n${`${BASE64.slice(0, 76)}\n`.repeat(MANY / 77)} there`],
  ['base64 with spaces', 'text', BASE64.replaceAll(/(.{8})/g, '$1 ').repeat(MANY / 360)],
  ['a signature', 'sealed', BASE64.repeat(MANY / 320)],
  ['a signature with dots', 'sealed', `${BASE64.slice(0, 12)}.`.repeat((2 * MANY) / 13)],
] as const)('%s of many megabytes is read, in short steps', (_, kind, value) => {
  const files = filesWithin(value, kind)
  let steps = 0
  let found = ''
  for (;;) {
    const step = files.next()
    if (step.done) break
    steps += 1
    found += step.value?.text.slice(0, 100) ?? ''
  }
  expect(steps).toBeGreaterThan(value.length / 5000)
  if (!value.includes('.')) expect(found).toContain('The code is 4711 x.')
})
