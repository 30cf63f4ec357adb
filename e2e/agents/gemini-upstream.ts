import {
  bearerToken,
  type Call,
  type Frame,
  Refusal,
  type Reply,
  type ReplyTimeAndIds,
  type Upstream,
} from '@sluice/simulator'
import { type Fields, asFields, asList, asString } from '@sluice/simulator/fields'
import { type ModelInput, nextTurn, pieces, tokensOf } from './model.ts'
import { type ReturnedSignatures, signed } from './signatures.ts'

const METHOD = /^\/models\/(.+):(\w+)$/

/**
 * The model behind the Gemini API. It signs the first call of each step and the end of each answer, and
 * refuses a history without all of these signatures, or with a placeholder.
 */
export function geminiUpstream(models: readonly string[], returned: ReturnedSignatures): Upstream {
  return {
    bodyIfServed,
    models,
    keyOf: (headers) => asString(headers['x-goog-api-key']) || bearerToken(headers),
    reply: (body, model, stamp) => reply(body, model, stamp, returned),
    refuse: ({ message }) => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }),
  }
}

function bodyIfServed({ method, path, body }: Call): Fields | undefined {
  const [, model, name] = METHOD.exec(decodeURIComponent(path)) ?? []
  const isAsked = method === 'POST' && (name === 'generateContent' || name === 'streamGenerateContent')
  return isAsked ? { ...body, model, stream: name === 'streamGenerateContent' } : undefined
}

function reply(body: Fields, model: string, stamp: ReplyTimeAndIds, returned: ReturnedSignatures): Reply {
  const contents = asList(body.contents).map(asFields)
  requireSignatures(contents, returned)
  const { thinking, text, calls } = nextTurn(modelInput(body, contents))
  const showsThoughts = asFields(asFields(body.generationConfig).thinkingConfig).includeThoughts === true
  if (calls.length > 0 && !showsThoughts) throw new Refusal('malformed', 'expected a request for thoughts')
  const callParts = calls.map(({ name, input }, at): Fields => {
    const id = stamp.id('')
    const call = { id, name, args: asFields(JSON.parse(input)) }
    return { functionCall: call, ...(at === 0 && { thoughtSignature: signed(id) }) }
  })
  const parts: Fields[] = [
    ...(thinking === '' ? [] : [{ text: thinking, thought: true }]),
    ...pieces(text).map((piece) => ({ text: piece })),
    ...callParts,
    ...(calls.length === 0 && text !== '' ? [{ text: '', thoughtSignature: signed(text) }] : []),
  ]
  const prompt = tokensOf(JSON.stringify(body))
  const thoughts = tokensOf(thinking)
  const candidates = tokensOf(text + JSON.stringify(calls))
  const usageMetadata = {
    promptTokenCount: prompt,
    candidatesTokenCount: candidates,
    thoughtsTokenCount: thoughts,
    totalTokenCount: prompt + candidates + thoughts,
  }
  const responseId = stamp.id('')
  const answer = (said: readonly Fields[], ending: object): Fields => ({
    candidates: [{ content: { role: 'model', parts: said }, ...ending, index: 0 }],
    usageMetadata,
    modelVersion: model,
    responseId,
  })
  if (body.stream !== true) return { kind: 'whole', body: answer(parts, { finishReason: 'STOP' }), tokens: 0 }
  const frames = parts.map((part, at): Frame => {
    const chunk = answer([part], at === parts.length - 1 ? { finishReason: 'STOP' } : {})
    return { text: `data: ${JSON.stringify(chunk)}\r\n\r\n`, tokens: 1 }
  })
  return { kind: 'stream', frames }
}

// Requires a signature on the first call of each of the model's steps, and after the text of a step without
// calls.
function requireSignatures(contents: readonly Fields[], returned: ReturnedSignatures): void {
  for (const [at, content] of contents.entries()) {
    if (content.role !== 'model') continue
    const parts = asList(content.parts).map(asFields)
    const where = `contents[${at}]`
    const call = parts.find(({ functionCall }) => functionCall !== undefined)
    if (call) returned.require(asString(asFields(call.functionCall).id), call.thoughtSignature, where)
    else
      returned.require(
        spoken(parts),
        parts.find(({ thoughtSignature }) => thoughtSignature)?.thoughtSignature,
        where,
      )
  }
}

function modelInput(body: Fields, contents: readonly Fields[]): ModelInput {
  const heard = contents
    .filter(({ role }) => role !== 'model')
    .flatMap(({ parts }) => asList(parts).map(asFields))
  return {
    user: heard.map(({ text }) => asString(text)).join('\n'),
    results: heard.flatMap(({ functionResponse }) =>
      functionResponse === undefined ? [] : [resultText(asFields(asFields(functionResponse).response))],
    ),
    tools: asList(body.tools)
      .flatMap((tool) => asList(asFields(tool).functionDeclarations).map(asFields))
      .map(({ name, parametersJsonSchema }) => ({
        name: asString(name),
        schema: asFields(parametersJsonSchema),
      })),
  }
}

function resultText(response: Fields): string {
  const text = response.output ?? response.error ?? response
  return typeof text === 'string' ? text : JSON.stringify(text)
}

function spoken(parts: readonly Fields[]): string {
  return parts.map(({ text, thought }) => (thought === true ? '' : asString(text))).join('')
}
