import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../../test/generators/characters.ts'
import { conversationOf } from '../../../../test/samples/conversation.ts'
import type { Part, ProviderSignature, TextPart, Turn } from '../conversation.ts'
import { CopyableText } from '../frame-writer.ts'
import type { ReplyEvent, ReplyPart } from '../reply.ts'
import { SignedReply, signedPartsOfReply } from './signed-reply.ts'
import { readSignedParts, type SignedParts, signedPartsText } from './signed-parts.ts'
import { UnsignedTurnFinder } from './unsigned-turn-finder.ts'

const USER: Turn = { role: 'user', parts: [{ kind: 'text', text: 'How is it there?' }] }
const PROOF: ProviderSignature = { protocol: 'messages', value: 'c2lnbmVk' }
const THOUGHT = { kind: 'thinking', text: 'I look.', proof: PROOF } as const
const REDACTED = {
  kind: 'opaque',
  protocol: 'messages',
  value: { type: 'redacted_thinking', data: 'x' },
} as const
const call = (id: string): ReplyPart & Part => ({ kind: 'tool-call', id, name: 'look', input: '{}' })
const said = (text: string): TextPart => ({ kind: 'text', text })

/** Looks up what was stored of a reply, read back from its text form. */
function kept(parts: readonly ReplyPart[]): (anchor: string) => SignedParts | undefined {
  const { context } = new UnsignedTurnFinder(conversationOf({ turns: [USER] }))
  const runs = signedPartsOfReply(parts, { context })
  return (anchor) => {
    const run = runs.get(anchor)
    return run && readSignedParts(signedPartsText(run))
  }
}

/** The turn that the client sent back, with the signed parts of the reply restored. */
function restored(reply: readonly ReplyPart[], came: readonly Part[]): readonly Part[] | undefined {
  const conversation = conversationOf({ turns: [USER, { role: 'assistant', parts: came }] })
  return new UnsignedTurnFinder(conversation).restored(kept(reply)).turns[1]?.parts
}

describe('a turn that a client returned without its signatures', () => {
  test('a returned assistant turn gets its thoughts back part by part, even if the client joined its texts', () => {
    const reply = [THOUGHT, REDACTED, said('One. '), call('a'), said('Two.'), THOUGHT, call('b'), THOUGHT]
    expect(restored(reply, [said('One. Two.'), call('a'), call('b')])).toEqual(reply)
  })

  test("a returned assistant turn whose joined text is divided again keeps the text's cache mark at the end", () => {
    const reply = [THOUGHT, said('One. '), THOUGHT, said('Two.')]
    const cache = { ttl: '5m' } as const
    expect(restored(reply, [{ ...said('One. Two.'), cache }])).toEqual([
      THOUGHT,
      said('One. '),
      THOUGHT,
      { ...said('Two.'), cache },
    ])
  })

  test('a returned assistant turn whose texts were changed gets its thoughts back at its beginning and before its calls', () => {
    const reply = [THOUGHT, said('One.'), call('a'), REDACTED, said('Two.'), call('b')]
    expect(restored(reply, [said('Other words.'), call('a'), said('More.'), call('b')])).toEqual([
      THOUGHT,
      said('Other words.'),
      call('a'),
      REDACTED,
      said('More.'),
      call('b'),
    ])
    expect(restored([THOUGHT, said('One.')], [said(' One.\n')])).toEqual([THOUGHT, said(' One.\n')])
  })

  test('a returned assistant turn gets its signed thoughts in place of unsigned ones, and is unchanged if it has its own signatures', () => {
    const unsigned = { kind: 'thinking', text: 'I look.' } as const
    expect(restored([THOUGHT, call('a')], [unsigned, call('a')])).toEqual([THOUGHT, call('a')])
    const own = [{ ...THOUGHT, text: 'Other.' }, call('a')]
    expect(restored([THOUGHT, call('a')], own)).toBe(own)
    const unknown = [unsigned, call('unknown')]
    expect(restored([THOUGHT, call('a')], unknown)).toBe(unknown)
  })

  test('a returned assistant turn gets the signature of a text back after this text', () => {
    const proof: ProviderSignature = { protocol: 'gemini', value: 'c2lnbmVk', signs: 'text' }
    const reply: ReplyPart[] = [said('Sunny.'), { kind: 'thinking', text: '', proof }]
    expect(restored(reply, [said('Sunny.')])).toEqual(reply)
    expect(restored(reply, [said('Sunny. ')])).toEqual([said('Sunny. '), reply[1]])
  })

  test('any assistant turn that is returned without signatures gets them all back', () => {
    const parts = fc.array(
      fc.oneof(
        fc.constantFrom<ReplyPart>(THOUGHT, REDACTED),
        fc.string({ unit: anyCharacter, minLength: 1, maxLength: 5 }).map(said),
        fc.constant(undefined),
      ),
      { maxLength: 12 },
    )
    fc.assert(
      fc.property(parts, (given) => {
        const reply = given.map((part, i): ReplyPart & Part => part ?? call(`call_${i}`)) as Part[]
        const text = reply.map((part) => (part.kind === 'text' ? part.text : '')).join('')
        const calls = reply.filter(({ kind }) => kind === 'tool-call')
        const isSigned = reply.some(({ kind }) => kind === 'thinking' || kind === 'opaque')
        if (!isSigned || (calls.length === 0 && text.trim() === '')) return
        const back = restored(reply as ReplyPart[], [...(text === '' ? [] : [said(text)]), ...calls])
        expect(back).toEqual(reply)
      }),
    )
  })
})

describe('the anchor of a call', () => {
  const anchorsOf = (id: string, name = 'look', before = USER): readonly string[] =>
    new UnsignedTurnFinder(
      conversationOf({
        turns: [before, { role: 'assistant', parts: [{ kind: 'tool-call', id, name, input: '{}' }] }],
      }),
    ).anchors

  test.each([
    'toolu_01A09q90qw90lq917835lq9',
    'tooluse_kZJMlvQmRJ6eAyJE5GIl7Q',
    'tooluse_mQ-xT4_bKzR-vN8_hYcW2g',
    'call_x7-Kd_aQm-Tz4PbR_wE-nUs_0',
    'call_62136354a1b2c3d4e5f60718',
    'function-call-14368329470219845234',
    'chatcmpl-tool-0f8fad5bd9cb469fa16570867728950e',
    '550e8400-e29b-41d4-a716-446655440000',
  ])('a call with a random id is found by its id alone, as earlier versions stored it: %s', (id) =>
    expect(anchorsOf(id)).toEqual([`call ${id}`]),
  )

  test.each([
    ['call_0', 'look'],
    ['Bash:0', 'Bash'],
    ['functions.Bash:12', 'Bash'],
    ['function-call-10', 'look'],
    ['a1b2c3d4e', 'look'],
    ['getWeatherForecast2024', 'getWeatherForecast2024'],
    ['call_GetWeatherForecastForCity_10', 'look'],
    ['call_get_weather_forecast_2_for_city', 'look'],
    ['functions.GetTheWeatherForecast:12', 'look'],
    ['', ''],
  ])('a call with an id that may repeat is found in its own conversation only: %s', (id, name) => {
    const [anchor] = anchorsOf(id, name)
    expect(anchorsOf(id, name)).toEqual([anchor])
    expect(anchor).not.toBe(`call ${id}`)
    expect(anchorsOf(id, name, { role: 'user', parts: [said('Elsewhere?')] })).not.toEqual([anchor])
  })

  test('a call with an id that may repeat is found however its client writes its arguments', () => {
    const input = '{"b":{"y":"\\u00e9","x":1.0},"__proto__":2,"a":[1]}'
    const rewritten = '{ "a": [1], "__proto__": 2, "b": {"x": 1, "y": "é"} }'
    const reply = [THOUGHT, { ...call('call_0'), input }] as const
    expect(restored(reply, [{ ...reply[1], input: rewritten } as Part])).toMatchObject([
      THOUGHT,
      { input: rewritten },
    ])
    const other = [{ ...reply[1], input: '{"a":[1]}' } as Part]
    expect(restored(reply, other)).toBe(other)
    const bare = [THOUGHT, { ...call('call_0'), input: '' }] as const
    expect(restored(bare, [call('call_0')])).toEqual([THOUGHT, call('call_0')])
  })

  test('a call with an id that may repeat is found also if its arguments are nested deeper than the stack allows', () => {
    const nested = (depth: number): string => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
    const deep = { ...call('call_0'), input: nested(100_000) } as Part & ReplyPart
    expect(restored([THOUGHT, deep], [deep])).toEqual([THOUGHT, deep])
    const other = [{ ...deep, input: nested(99_999) } as Part]
    expect(restored([THOUGHT, deep], other)).toBe(other)
  })
})

describe('what a stream has signed', () => {
  test('signatures of a reply are collected from interleaved parts, and none from a stream without signatures', () => {
    const events: ReplyEvent[] = [
      { kind: 'part-start', index: 0, part: { kind: 'thinking' } },
      { kind: 'part-start', index: 1, part: { kind: 'tool-call', id: 'a', name: 'look' } },
      { kind: 'thinking', index: 0, text: 'I ' },
      { kind: 'tool-input', index: 1, text: '{}' },
      { kind: 'thinking', index: 0, text: 'look.' },
      { kind: 'proof', index: 0, proof: PROOF },
    ]
    const reply = new SignedReply()
    for (const event of events.slice(0, -1)) reply.add(event)
    expect(reply.parts).toEqual([])
    for (const event of events.slice(-1)) reply.add(event)
    expect(reply.parts).toEqual([THOUGHT, call('a')])
  })

  test('signatures of a reply are collected also if some of its thoughts were forwarded as undecoded bytes', () => {
    const bytes = Buffer.from('"\\"é\\n"')
    const copied = new CopyableText('thinking', 0, bytes, {
      from: 1,
      to: bytes.length - 1,
      escapes: 2,
      codePoints: 3,
    })
    const large = Buffer.alloc(9_000_002, 'x')
    const match = { from: 1, to: large.length - 1, escapes: 0, codePoints: large.length - 2 }
    const reply = new SignedReply()
    reply.add({ kind: 'part-start', index: 0, part: { kind: 'thinking' } })
    for (const event of [
      copied,
      { kind: 'thinking', index: 0, text: '\ud83d' } as const,
      { kind: 'thinking', index: 0, text: '\ude42' } as const,
      copied,
      new CopyableText('thinking', 0, large, match),
      copied,
    ])
      reply.add(event)
    bytes.fill(0)
    reply.add({ kind: 'proof', index: 0, proof: PROOF })
    const text = `"é\n🙂"é\n${'x'.repeat(9_000_000)}"é\n`
    expect(reply.parts.map((part) => part.kind === 'thinking' && part.text === text)).toEqual([true])
  })
})

describe('the stored form of signatures', () => {
  test.each([
    '',
    '{}',
    '{"version":2,"before":[],"after":[]}',
    '{"version":1,"before":[{"kind":"x"}],"after":[]}',
  ])('stored signatures with invalid content or of another version are ignored: %s', (text) =>
    expect(readSignedParts(text)).toBeUndefined(),
  )
})
