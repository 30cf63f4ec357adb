import { asRecord, parseRecord, stringOrEmpty } from '../json/record.ts'
import { type AnswerForms, isErrorBody, type Json, recordsInList } from '../answer-forms.ts'

/** Events of one block, without their index. */
type BlockEvent = readonly [name: string, data: Json]

/**
 * Converts Converse answers between one JSON object and a stream of events, as which the binary messages of the
 * provider are read.
 */
export const converseAnswerForms: AnswerForms = {
  whole(events) {
    const blocks = new Map<unknown, Json>()
    const inputs = new Map<unknown, string>()
    const whole: Json = {}
    for (const { name, data } of events) {
      if (isErrorBody(data) || name === 'error') return undefined
      const at = data['contentBlockIndex']
      if (name === 'contentBlockStart') blocks.set(at, { ...asRecord(data['start']) })
      else if (name === 'contentBlockDelta') {
        const delta = asRecord(data['delta']) ?? {}
        const input = asRecord(delta['toolUse'])?.['input']
        if (typeof input === 'string') inputs.set(at, (inputs.get(at) ?? '') + input)
        else blocks.set(at, grown(blocks.get(at) ?? {}, delta))
      } else if (name === 'messageStop' || name === 'metadata') Object.assign(whole, data)
    }
    for (const [at, block] of blocks) {
      const call = asRecord(block['toolUse'])
      if (call) blocks.set(at, { toolUse: { ...call, input: parseRecord(inputs.get(at) ?? '') ?? {} } })
    }
    if (whole['stopReason'] === undefined) return undefined
    return { output: { message: { role: 'assistant', content: [...blocks.values()] } }, ...whole }
  },
  frames(whole) {
    const { output, stopReason, usage, metrics, trace, serviceTier } = whole
    const content = recordsInList(asRecord(asRecord(output)?.['message'])?.['content'])
    const blocks = content.flatMap((block, contentBlockIndex) =>
      [...eventsOf(block), ['contentBlockStop', {}] as const].map(
        ([name, data]): BlockEvent => [name, { contentBlockIndex, ...data }],
      ),
    )
    const events: BlockEvent[] = [
      ['messageStart', { role: 'assistant' }],
      ...blocks,
      ['messageStop', { stopReason }],
      ['metadata', { usage, metrics, trace, serviceTier }],
    ]
    return events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('')
  },
  isComplete: ({ stopReason }) => stopReason === 'end_turn' || stopReason === 'tool_use',
}

/** A block with the content of a delta added. Unknown types of deltas are ignored. */
function grown(block: Json, delta: Json): Json {
  const cited = asRecord(block['citationsContent'])
  const before = stringOrEmpty(cited ? recordsInList(cited['content'])[0]?.['text'] : block['text'])
  const added = delta['text']
  if (typeof added === 'string') {
    const text = before + added
    return cited ? { citationsContent: { ...cited, content: [{ text }] } } : { text }
  }
  const citation = asRecord(delta['citation'])
  if (citation) {
    const citations = [...recordsInList(cited?.['citations']), citation]
    return { citationsContent: { content: [{ text: before }], citations } }
  }
  const reasoning = asRecord(delta['reasoningContent'])
  return reasoning ? grownReasoning(block, reasoning) : block
}

function grownReasoning(block: Json, { text, signature, redactedContent }: Json): Json {
  if (typeof redactedContent === 'string') return { reasoningContent: { redactedContent } }
  const before = asRecord(asRecord(block['reasoningContent'])?.['reasoningText'])
  const reasoningText = {
    ...before,
    text: stringOrEmpty(before?.['text']) + stringOrEmpty(text),
    ...(typeof signature === 'string' && { signature }),
  }
  return { reasoningContent: { reasoningText } }
}

function eventsOf(block: Json): BlockEvent[] {
  const delta = (value: Json): BlockEvent => ['contentBlockDelta', { delta: value }]
  if (typeof block['text'] === 'string') return [delta({ text: block['text'] })]
  const call = asRecord(block['toolUse'])
  if (call) {
    const { input, ...start } = call
    return [
      ['contentBlockStart', { start: { toolUse: start } }],
      delta({ toolUse: { input: JSON.stringify(input ?? {}) } }),
    ]
  }
  const reasoning = asRecord(block['reasoningContent'])
  const { text, signature } = asRecord(reasoning?.['reasoningText']) ?? {}
  if (typeof text === 'string')
    return [
      delta({ reasoningContent: { text } }),
      ...(typeof signature === 'string' ? [delta({ reasoningContent: { signature } })] : []),
    ]
  return reasoning ? [delta({ reasoningContent: reasoning })] : [['contentBlockStart', { start: block }]]
}
