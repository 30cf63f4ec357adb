import { describe, expect, it } from 'vitest'
import { compileRule, type RuleMatch } from './rule.ts'
import { TextScreen } from './screen.ts'

/** The texts of the matches. */
function found(match: RuleMatch, text: string): readonly string[] {
  const screen = new TextScreen([{ rule: compileRule('no-mail', match), do: 'flag' }])
  return screen.find(text).map(({ start, end }) => text.slice(start, end))
}

const refusals: readonly [RuleMatch, string][] = [
  [{ regex: '(a' }, 'the regex `(a` is not valid in RE2 syntax: missing closing ): `(a`'],
  [{ regex: 'a(?=b)' }, 'invalid or unsupported Perl syntax: `(?=`'],
  [{ regex: String.raw`(a)\1` }, String.raw`invalid escape sequence: ${'`'}\1${'`'}`],
  [{ regex: '(?<=a)b' }, 'is not valid in RE2 syntax'],
  [{ regex: 'a{1001}' }, 'invalid repeat count: `{1001}`'],
  [{ regex: '(a{1000}){1000}' }, 'invalid repeat count'],
  [{ regex: 'a*' }, 'matches the empty text; it must need at least one character'],
  [{ regex: String.raw`\b` }, 'matches the empty text'],
  [{ regex: 'a{300}' }, 'needs at least 300 characters, but most is 256'],
  [{ regex: String.raw`[^\x00-\x{10FFFF}]` }, 'can never match'],
  [{ regex: 'a', most: 0 }, 'most must be a whole number from 1 to 4096, not 0'],
  [{ regex: 'a', most: 1.5 }, 'not 1.5'],
  [{ regex: 'a', most: 5000 }, 'not 5000'],
  [{ regex: 'a{256}x' }, 'the regex `a{256}x` needs at least 257 characters, but most is 256'],
  [
    { regex: '[ab]{0,191}x' },
    'the regex `[ab]{0,191}x` is too large: it has 193 instructions, and with most 256 it may have 192',
  ],
  [
    { regex: '[ab]{0,47}x', most: 4096 },
    'the regex `[ab]{0,47}x` is too large: it has 49 instructions, and with most 4096 it may have 48',
  ],
  [{ regex: [] }, 'regex needs 1 to 64 expressions, not 0'],
  [{ words: [] }, 'words needs 1 to 10000 words, not 0'],
  [{ words: ['a', ' '] }, 'words contains an empty word'],
  [{ words: ['a'.repeat(201)] }, 'at most 200 are possible'],
  [{ pii: [] }, 'pii needs at least one kind'],
  [
    { pii: ['shoe_size' as 'ssn'] },
    'pii has no kind "shoe_size"; the kinds are email, phone, credit_card, iban, ip, ssn',
  ],
]

describe('compileRule', () => {
  for (const [match, message] of refusals)
    it(`refuses ${JSON.stringify(match).slice(0, 60)} and says why`, () => {
      expect(() => compileRule('r', match)).toThrow(message)
    })

  it.each([
    [{ regex: '[ab]{0,190}x' }],
    [{ regex: '[ab]{0,190}x', most: 1024 }],
    [{ regex: '[ab]{0,46}x', most: 4096 }],
    [{ regex: Array.from({ length: 64 }, () => '[ab]{0,190}x') }],
  ])('accepts an expression of the largest size: %j', (match) => {
    expect(found(match, 'x')).toEqual(['x'])
  })

  it('names the kind of a match after the rule where the match names none', () => {
    const screen = new TextScreen([
      { rule: compileRule('project-names v2', { words: ['titan'] }), do: 'flag' },
      { rule: compileRule('x', { pii: ['email'] }), do: 'flag' },
    ])
    expect(screen.find('Titan a@b.org').map(({ kind }) => kind)).toEqual(['PROJECT_NAMES_V2', 'EMAIL'])
  })
})

describe('words', () => {
  it('finds whole words without regard to case', () => {
    expect(found({ words: ['Merlin'] }, 'MERLIN, merlin’s; merlins premerlin Merlin2 merlin_x')).toEqual([
      'MERLIN',
      'merlin',
    ])
  })

  it('finds words of scripts without spaces anywhere', () => {
    expect(
      found({ words: ['密码', 'パスワード', 'รหัสผ่าน'] }, '我的密码是什么 新しいパスワードです ลืมรหัสผ่านแล้ว'),
    ).toEqual(['密码', 'パスワード', 'รหัสผ่าน'])
  })

  it('finds a Latin word next to a script without spaces', () => {
    expect(found({ words: ['vpn'] }, '公司VPN密码 vpnx')).toEqual(['VPN'])
  })

  it('knows the letters of all scripts', () => {
    expect(found({ words: ['пароль', 'straße', 'ΣΊΣΥΦΟΣ'] }, 'ПАРОЛЬ пароля STRASSE Straße σίσυφος')).toEqual(
      ['ПАРОЛЬ', 'STRASSE', 'Straße', 'σίσυφος'],
    )
  })

  it('finds a word with İ or ı in each spelling, and in the capitals and small letters of Turkish', () => {
    const spellings = ['İstanbul', 'İSTANBUL', 'I\u0307stanbul', 'i\u0307stanbul', 'istanbul']
    expect(found({ words: ['İstanbul'] }, `${spellings.join(' ')} ıstanbul`)).toEqual(spellings)
    expect(found({ words: ['İzmir', 'ılık iklim'] }, 'İZMİR izmir ILIK İKLİM ılık iklim')).toEqual([
      'İZMİR',
      'izmir',
      'ILIK İKLİM',
      'ılık iklim',
    ])
    expect(found({ words: ['I\u0307stanbul'] }, spellings.join(' '))).toEqual(spellings)
  })

  it('finds both ways of writing an accent, and no letter that has another one', () => {
    expect(found({ words: ['café'] }, 'CAFÉ cafe\u0301 cafe café\u0323')).toEqual(['CAFÉ', 'cafe\u0301'])
  })

  it('does not find a part of a longer word that has marks', () => {
    expect(found({ words: ['मा', 'काम', 'art'] }, 'सीमा मेकाम cafe\u0301art e\u0301\u0323\u200dart')).toEqual(
      [],
    )
    expect(found({ words: ['मा', 'art'] }, 'मा \u0301art \u0301')).toEqual(['मा', 'art'])
    expect(found({ words: ['art'] }, '\u0301art')).toEqual(['art'])
  })

  it('takes any white space for the space of a phrase', () => {
    expect(found({ words: ['top secret'] }, 'Top\n secret, topsecret, top\u00a0 x')).toEqual(['Top\n secret'])
  })

  it('takes signs of expressions as they are', () => {
    expect(found({ words: ['c++', '.net', 'a.b'] }, 'C++ .NET a.b axb')).toEqual(['C++', '.NET', 'a.b'])
  })

  it('finds the words of a list of ten thousand', () => {
    const words = Array.from({ length: 10_000 }, (_, n) => `word${n}x`)
    expect(found({ words }, 'a word77x, word9999x, word10000x')).toEqual(['word77x', 'word9999x'])
  })
})

describe('most', () => {
  it('gives up an attempt after so many characters', () => {
    expect(found({ regex: 'a[^b]*b', most: 10 }, `a${'-'.repeat(8)}b a${'-'.repeat(9)}b`)).toEqual([
      `a${'-'.repeat(8)}b`,
    ])
  })

  it('does not end a match that goes on matching', () => {
    const long = `key=${'x'.repeat(1000)}`
    expect(found({ regex: String.raw`key=\S+` }, `${long} y`)).toEqual([long])
  })
})
