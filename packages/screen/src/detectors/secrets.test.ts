import { describe, expect, it } from 'vitest'
import { Chance } from '../../../../test/detection/chance.ts'
import { compileRule } from '../rule.ts'
import { TextScreen } from '../screen.ts'

const screen = new TextScreen([{ rule: compileRule('secrets', { secrets: true }), do: 'redact', with: '#' }])
const chance = new Chance(5)
const LENGTHS = [20, 150, 151, 200, 201, 257, 1000]

/** The text with its matches redacted, which is the same however the text is cut. */
function redacted(text: string): string {
  const { text: whole } = screen.apply(text)
  for (const size of [3, 100]) {
    const stream = screen.stream()
    let output = ''
    for (let at = 0; at < text.length; at += size) {
      output += stream.push(text.slice(at, at + size))
      expect(stream.held).toBeLessThanOrEqual(screen.most)
    }
    expect(output + stream.end()).toBe(whole)
  }
  return whole
}

/** A value of this length that looks random. */
const base64 = (length: number): string => `a1B2c3D4${chance.text(length - 9, `0123456789${LETTERS}+/`)}x`
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `docs/matching.md: Detection data`. */
describe('a value that is named a secret', () => {
  it.each(LENGTHS)('is found as a whole if it has %i characters', (length) => {
    for (const value of [
      base64(length),
      `${base64(length - 2)}==`,
      base64(length).replaceAll(/[+/]/g, 'x'),
    ]) {
      expect(redacted(`aws_session_token = ${value}\nnext`)).toBe('aws_session_token = #\nnext')
      expect(redacted(`{"client_secret":"${value}"}`)).toBe('{"client_secret":"#"}')
      expect(redacted(`Authorization: Bearer ${value}`)).toBe('Authorization: Bearer #')
    }
  })

  it('is all that follows the sign, with any space around it', () => {
    for (const name of ['password=', 'password  =', 'token   =  ', 'token  : '])
      expect(redacted(`${name}${base64(30)};`)).toBe(`${name}#;`)
  })

  it('is checked as a whole: a path, a placeholder or a call of a function is not a secret, however long it is', () => {
    for (const value of [
      'a1b2c3d4e5f6g7h8i9j-your-key',
      'a1b2c3d4e5f6g7h8i9j0your-key',
      'a1b2c3d4e5f6g7h8i9j0_example',
      'client.a1b2c3d4e5f6g7h8i9j0(x)',
      'modules/of/packages/named.v2/index1',
      'x/'.repeat(400),
    ])
      for (const text of [`token=${value}\n`, `token=${value}`]) expect(redacted(text)).toBe(text)
  })

  it('is checked by its first 151 characters alone if it has more', () => {
    const [random, path] = [`${base64(50)}${chance.hex(150)}`, 'x/'.repeat(76)]
    expect(redacted(`token=${random}${path};`)).toBe('token=#;')
    expect(redacted(`token=${path}${random};`)).toBe(`token=${path}${random};`)
  })

  it.each([
    '...and-more',
    '..x',
    '-example',
    '-for-example',
    '.example.com',
    '~your-key',
    '/placeholder',
    '+xxxxxx',
    '.foo(',
    '.foo.bar(',
    '=(',
    '~your-key(',
  ])('is found together with the example, dots or call that a sign joins to it: %s', (end) => {
    for (const length of [20, 40, 120])
      for (const name of ['token=', 'client_secret: ', 'Authorization: Bearer '])
        expect(redacted(`${name}${base64(length).replaceAll(/[+/]/g, 'x')}${end} Next`)).toBe(`${name}# Next`)
  })

  it('may end a sentence or be cut short', () => {
    for (const end of ['.', '...'])
      expect(redacted(`password: ${base64(24)}${end} Next`)).toBe('password: # Next')
  })
})

it('a JSON Web Token is found as a whole, however long its header and its claims are', () => {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  for (const header of [
    { alg: 'HS256', typ: 'JWT' },
    { typ: 'dpop+jwt', alg: 'RS256', jwk: { kty: 'RSA', n: chance.base64url(342), e: 'AQAB' } },
    {
      kid: chance.hex(40),
      jku: `https://login.example.com/${chance.hex(30)}/keys`,
      x5t: chance.base64url(27),
    },
    { alg: 'RS256', x5c: [chance.base64url(1600)] },
    ...Array.from({ length: 8 }, (_, at) => ({ alg: 'ES256', kid: chance.hex(152 + at) })),
  ])
    for (const claims of [{ sub: 'ann' }, { sub: 'ann', groups: chance.hex(900) }])
      expect(redacted(`the token ${part(header)}.${part(claims)}.${chance.base64url(86)} of me`)).toBe(
        'the token # of me',
      )
})
