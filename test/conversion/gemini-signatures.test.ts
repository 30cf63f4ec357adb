import { describe, expect, test } from 'vitest'
import type { Conversation, Part, Turn } from '@sluice/wire/conversation'
import { geminiCodec } from '@sluice/wire/gemini'
import { UNSIGNED_CALL_SIGNATURE } from '../../packages/wire/src/gemini/signature.ts'
import { signedPartsOfReply, UnsignedTurnFinder } from '@sluice/wire/signatures'
import { conversationOf, upstreamOf } from '../samples/conversation.ts'

const USER: Turn = { role: 'user', parts: [{ kind: 'text', text: 'How is it there?' }] }
const call = (id: string): Part => ({ kind: 'tool-call', id, name: 'look', input: '{}' })

describe('signatures of Gemini', () => {
  const signature = Buffer.alloc(200_000, 7).toString('base64')
  const upstream = upstreamOf('gemini-3-pro')
  const bytes = Buffer.from(
    JSON.stringify({
      candidates: [
        {
          content: {
            parts: [
              { text: 'I look.', thought: true },
              { functionCall: { id: 'a', name: 'look', args: {} }, thoughtSignature: signature },
              { functionCall: { id: 'b', name: 'look', args: {} } },
            ],
          },
          finishReason: 'STOP',
        },
      ],
    }),
  )
  const came: Conversation = conversationOf({
    turns: [
      USER,
      { role: 'assistant', parts: [call('a'), call('b')] },
      {
        role: 'user',
        parts: ['a', 'b'].map((callId) => ({
          kind: 'tool-result',
          callId,
          parts: [{ kind: 'text', text: 'sunny' }],
          isError: false,
        })),
      },
    ],
  })
  const signaturesIn = (conversation: Conversation): unknown =>
    JSON.parse(geminiCodec.encodeRequest(conversation, upstream, new Set()).toString()).contents[1].parts.map(
      ({ thoughtSignature }: { thoughtSignature?: string }) => thoughtSignature,
    )

  test('a Gemini thought signature is restored at the first of parallel tool calls; if none is known a placeholder is sent', () => {
    const { parts } = geminiCodec.decodeReply(bytes)
    const turns = new UnsignedTurnFinder(came)
    const runs = signedPartsOfReply(parts, new UnsignedTurnFinder(conversationOf({ turns: [USER] })))
    expect(signaturesIn(turns.restored((anchor) => runs.get(anchor)))).toEqual([signature, undefined])
    expect(signaturesIn(came)).toEqual([UNSIGNED_CALL_SIGNATURE, undefined])
  })
})
