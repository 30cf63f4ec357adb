import { describe, expect, test } from 'vitest'
import { repairWhole, StreamRepair } from '@sluice/wire/repair'
import { codePointsIn, placedCitation, type Reply, type ReplyPart } from '@sluice/wire/reply'
import { recordedAnswers } from '../fidelity/recordings.ts'
import { ALL_CODECS } from './convert-through.ts'
import { foldReply } from './fold-reply.ts'

// The law of `docs/configuration.md: Repair` about sound answers: what providers sent stays as it is, or says the same.

const IDENTITY = { id: 'new', created: 1 }
const RECORDED = recordedAnswers()

/** Recorded whole answers with a list as content, no reason, a number as reason, or a text as reasoning. */
const FAULTY: ReadonlySet<string> = new Set([
  'mistral--reasoning.json',
  'openai--chat-completion-image-input.json',
  'vertex--gemini-token-counts.json',
  'mistralrs--responses-api-no-think-returns-text.json',
])

type Protocol = keyof typeof ALL_CODECS

function repaired(protocol: Protocol, text: string, size: number): string {
  const repair = new StreamRepair({ codec: ALL_CODECS[protocol], protocol, choices: 1, identity: IDENTITY })
  const bytes = Buffer.from(text)
  let out = ''
  for (let at = 0; at < bytes.length; at += size) out += repair.push(bytes.subarray(at, at + size)).toString()
  out += repair.end().toString()
  repair.release()
  return out
}

function read(protocol: Protocol, text: string): Reply | undefined {
  const decoder = ALL_CODECS[protocol].streamDecoder()
  const events = [...decoder.push(Buffer.from(text)), ...decoder.end()]
  const reply = events.some(({ kind }) => kind === 'failure') ? undefined : foldReply(events)
  return reply && withPlaces(reply)
}

/** The reply in which pages that are cited by a text as a whole are cited at its place, as `url_citation` states them. */
function withPlaces(reply: Reply): Reply {
  const placed = (part: ReplyPart): ReplyPart =>
    part.kind === 'text' && part.citations
      ? { ...part, citations: part.citations.map((one) => placedCitation(one, codePointsIn(part.text), 0)) }
      : part
  return { ...reply, parts: reply.parts.map(placed) }
}

/** The names of all members in the events of a stream that have a value. */
function members(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/"(\w+)":(?!null|""|\{\}|\[\])/g)].map(([, name = '']) => name))
}

describe('repair of recorded answers', () => {
  const protocols = ['chat', 'messages', 'responses', 'gemini'] as const
  test.each(protocols)('streams of %s say the same after repair, however they are divided', (protocol) => {
    for (const { name, text } of RECORDED.filter((one) => one.streamed && one.dialect === protocol)) {
      const whole = repaired(protocol, text, text.length * 4)
      expect(repaired(protocol, text, 97), name).toBe(whole)
      if (protocol !== 'chat')
        expect(whole.replaceAll(/^event: .*\n/gm, ''), name).toContain(
          text.replaceAll(/^event: .*\n/gm, '').trim(),
        )
      const said = read(protocol, text)
      // A stream without an id gets one.
      expect(read(protocol, whole), name).toEqual(said && { ...said, id: said.id || IDENTITY.id })
      if (protocol === 'chat' && said)
        expect(
          [...members(text)].filter((one) => one !== 'logprobs' && !members(whole).has(one)),
          name,
        ).toEqual([])
    }
  })

  test.each(protocols)('whole answers of %s keep their bytes, but for those with faults', (protocol) => {
    for (const { name, text } of RECORDED.filter((one) => !one.streamed && one.dialect === protocol)) {
      const { bytes, isRepaired } = repairWhole(
        { codec: ALL_CODECS[protocol], name: protocol },
        Buffer.from(text),
        IDENTITY,
      )
      expect(isRepaired, name).toBe(FAULTY.has(name))
      if (!isRepaired) expect(bytes.toString(), name).toBe(text)
    }
  })
})
