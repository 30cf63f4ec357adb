import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lawRuns } from '../../../test/runner/tier.ts'
import { Pseudonyms } from './pseudonyms.ts'
import { compileRule } from './rule.ts'
import { TextScreen } from './screen.ts'

const key = Buffer.alloc(32, 1)
const screen = new TextScreen([{ rule: compileRule('mail', { pii: ['email'] }), do: 'replace' }])
const made = () => {
  const pseudonyms = new Pseudonyms({ key, user: '17' })
  const values = ['a@example.org', 'say "hi"\\\n', '[[EMAIL_00000000]]', '😀', '']
  return { pseudonyms, tokens: values.map((value) => pseudonyms.tokenFor('EMAIL', value)), values }
}

describe('Pseudonyms', () => {
  it('writes a token of the kind and eight digits for a value', () => {
    const pseudonyms = new Pseudonyms({ key, user: '17' })
    const { text } = screen.apply('from ann@example.org to bob@example.org and ann@example.org', pseudonyms)
    const [, ann, bob, again] =
      /^from (\[\[EMAIL_[0-9a-f]{8}\]\]) to (\[\[EMAIL_[0-9a-f]{8}\]\]) and (.*)$/.exec(text) ?? []
    expect(again).toBe(ann)
    expect(bob).not.toBe(ann)
    expect(pseudonyms.size).toBe(2)
    expect(pseudonyms.restore(`Hi ${bob}, ${ann}`)).toBe('Hi bob@example.org, ann@example.org')
  })

  it('gives a value the same token in the next request of the user, and another to another user', () => {
    const token = (user: string, secret = key) =>
      new Pseudonyms({ key: secret, user }).tokenFor('EMAIL', 'ann@example.org')
    expect(token('17')).toBe(token('17'))
    expect(token('17')).not.toBe(token('18'))
    expect(token('17')).not.toBe(token('17', Buffer.alloc(32, 2)))
  })

  it('gives values whose tokens would be equal different ones', () => {
    const named = () => new Pseudonyms({ key, user: '17' })
    // The first two numbered values whose tokens begin alike. If tokens are computed otherwise, others are to be searched for.
    const [first, second] = ['value 9431', 'value 76109']
    expect(named().tokenFor('X', second)).toBe(named().tokenFor('X', first))
    const pseudonyms = named()
    const tokens = [first, second].map((value) => pseudonyms.tokenFor('X', value))
    expect(new Set(tokens).size).toBe(2)
    expect(pseudonyms.restore(tokens.join())).toBe(`${first},${second}`)
  })

  it('leaves tokens that the request did not make as they are', () => {
    const { pseudonyms } = made()
    const foreign = new Pseudonyms({ key, user: '18' }).tokenFor('EMAIL', 'secret@example.org')
    expect(pseudonyms.restore(`give me ${foreign} and [[EMAIL_12345678]]`)).toBe(
      `give me ${foreign} and [[EMAIL_12345678]]`,
    )
  })

  it('does not look for tokens in what it puts back', () => {
    const pseudonyms = new Pseudonyms({ key, user: '17' })
    const inner = pseudonyms.tokenFor('EMAIL', 'a@example.org')
    const outer = pseudonyms.tokenFor('NAME', `x${inner}`)
    expect(pseudonyms.restore(outer)).toBe(`x${inner}`)
  })

  it('escapes a value anew inside of JSON', () => {
    const { pseudonyms, tokens, values } = made()
    const args = JSON.stringify({ to: tokens, text: `x ${tokens[1]}` })
    expect(JSON.parse(pseudonyms.restoreJson(args))).toEqual({ to: values, text: `x ${values[1]}` })
  })

  const pieces = fc.array(
    fc.oneof(
      fc.integer({ min: 0, max: 4 }),
      fc.constantFrom(
        '[',
        '[[',
        ']]',
        '[[EMAIL_',
        '[[EMAIL',
        '1a2b3c4d',
        'text',
        '😀',
        '_',
        '[[EMAIL_1a2b3c4d]]',
      ),
    ),
    { maxLength: 12 },
  )

  it('puts back the same however a text is cut, and holds back an open token alone', () => {
    fc.assert(
      fc.property(pieces, fc.integer({ min: 1, max: 9 }), fc.boolean(), (pieces, size, json) => {
        const { pseudonyms, tokens, values } = made()
        const text = pieces.map((piece) => (typeof piece === 'number' ? tokens[piece] : piece)).join('')
        // Tokens of this text are never parts of each other.
        const expected = text.replaceAll(/\[\[EMAIL_[0-9a-f]{8}\]\]/g, (token) => {
          const value = values[tokens.indexOf(token)] ?? token
          return json && tokens.includes(token) ? JSON.stringify(value).slice(1, -1) : value
        })
        const restorer = pseudonyms.restorer({ json })
        let output = ''
        for (let at = 0; at < text.length; at += size) {
          output += restorer.push(text.slice(at, at + size))
          expect(restorer.held).toBeLessThan(Pseudonyms.mostToken)
        }
        output += restorer.end()
        expect(output).toBe(expected)
      }),
      { numRuns: lawRuns(2000) },
    )
  })
})
