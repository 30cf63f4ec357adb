import { expect, test } from 'vitest'
import { scanObject } from './json-scan.ts'
import { KnownMemberNames } from './known-names.ts'

const TOOL = new KnownMemberNames(['type', 'max_uses'])
const NAMES = new KnownMemberNames(['model', 'tokens'], { tools: () => TOOL })
const check = (text: string): void => NAMES.check(scanObject(Buffer.from(text)))

test('simple case folding decides which member names of a request count as alike, for every character', () => {
  const letters = 'abcdefghijklmnopqrstuvwxyz_'
  const names = new KnownMemberNames(letters)
  for (let code = 0; code <= 0xffff; code++) {
    const character = String.fromCharCode(code)
    const isAlike = /^[a-z_]$/iu.test(character) && !letters.includes(character)
    const checked = (): void => names.checkName(character)
    if (isAlike) expect(checked, code.toString(16)).toThrow('Invalid name')
    else expect(checked, code.toString(16)).not.toThrow()
  }
})

test('a member name of a request is accepted at every level if it is known, or not similar to a known one', () => {
  expect(() =>
    check('{"model":"a","tokens":1,"Other":2,"mod":3,"models":4,"tools":[{"type":"x","Name":1},7]}'),
  ).not.toThrow()
  expect(() => check('{"\\u006dodel":"a","other":{"Type":1,"type":2,"type":3}}')).not.toThrow()
  expect(() => check('{}')).not.toThrow()
})

test.each([
  ['{"Model":1}', "Invalid name 'Model': expected 'model'"],
  ['{"model":1,"mo\\u0044el":1}', "Invalid name 'moDel': expected 'model'"],
  ['{"to\u212aen\u017f":1}', "Invalid name 'to\u212aen\u017f': expected 'tokens'"],
  ['{"tools":{"Type":1}}', "Invalid name 'Type': expected 'type'"],
  ['{"tools":[{"type":1},{"MAX_USES":1}]}', "Invalid name 'MAX_USES': expected 'max_uses'"],
  ['{"tools":[{"type":1,"t\\u0079pe":1}]}', 'Invalid JSON at byte 20: the key "type" is given twice.'],
  ['{"tools":[{"x":1,"x":1}]}', 'Invalid JSON at byte 17: the key "x" is given twice.'],
])(
  'a request with a member name that is misspelled or given twice is refused with an error that names it: %s',
  (text, message) => {
    expect(() => check(text)).toThrow(message)
  },
)

test('two spellings of one field in a request are refused like a name that is given twice', () => {
  const names = new KnownMemberNames(['topP'], {}, () => ['topP', 'top_p'])
  expect(() => names.check(scanObject(Buffer.from('{"top_p":1}')))).not.toThrow()
  expect(() => names.check(scanObject(Buffer.from('{"top_p":1,"topP":1}')))).toThrow(
    'Invalid JSON at byte 11: the key "top_p" is given twice, also as "topP".',
  )
  expect(() => names.check(scanObject(Buffer.from('{"Top_P":1}')))).toThrow("expected 'top_p'")
})
