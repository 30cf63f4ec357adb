import { type ConversationStep, conversationState } from './conversation.ts'
import { type Fields, asFields, asList, asNumber, asString } from './fields.ts'
import { partsOfContent, requireSignatures } from './gemini-signatures.ts'
import { IMAGE_PLACEHOLDER } from './media.ts'
import type { Prompt, Tool, ToolChoice } from './prompt.ts'
import { Refusal } from './refusal.ts'

const MAX_TOKENS = 4096
/** The thinking level at which the model does not think, so that there is no summary of thoughts. */
const LEAST = 'MINIMAL'

/**
 * Reads a request of the Gemini API as a prompt. Throws `Refusal` where the provider would refuse, especially
 * if a signature is missing or was not issued by it.
 */
export function geminiPrompt(body: Fields, model: string): Prompt {
  const contents = asList(body.contents).map(asFields)
  if (contents.length === 0) throw new Refusal('malformed', 'contents is not specified')
  requireCalls(contents)
  requireSignatures(contents)
  const config = asFields(body.generationConfig)
  const tools = asList(body.tools).flatMap((tool) =>
    asList(asFields(tool).functionDeclarations).map(declared),
  )
  const system = textOf(partsOfContent(asFields(body.systemInstruction)))
  return {
    model,
    transcript: [JSON.stringify(tools), system, ...contents.map(transcribed)].join('\n'),
    ...conversationState([{ kind: 'system', text: system }, ...contents.flatMap(steps)]),
    tools,
    toolChoice: choice(asFields(asFields(body.toolConfig).functionCallingConfig)),
    parallelTools: true,
    announcesTools: false,
    thinks: thinks(asFields(config.thinkingConfig)),
    jsonSchema: jsonSchema(config),
    maxTokens: asNumber(config.maxOutputTokens) ?? MAX_TOKENS,
    stop: asList(config.stopSequences).map(asString),
  }
}

/** Throws `Refusal` unless each function response follows a call of that function. */
function requireCalls(contents: readonly Fields[]): void {
  for (const [at, content] of contents.entries()) {
    const answered = partsOfContent(content).flatMap(({ functionResponse }) =>
      functionResponse === undefined ? [] : [asString(asFields(functionResponse).name)],
    )
    const before = partsOfContent(contents[at - 1] ?? {})
    const called = new Set(before.map(({ functionCall }) => asString(asFields(functionCall).name)))
    if (answered.some((name) => !called.has(name)))
      throw new Refusal(
        'malformed',
        'Please ensure that function response turn comes immediately after a function call turn.',
      )
  }
}

function thinks({ thinkingBudget, thinkingLevel, includeThoughts }: Fields): boolean {
  if (thinkingBudget !== undefined && thinkingLevel !== undefined)
    throw new Refusal('malformed', 'thinking_budget and thinking_level cannot be set together')
  if (thinkingBudget !== undefined) return thinkingBudget !== 0
  return thinkingLevel === undefined ? includeThoughts === true : thinkingLevel !== LEAST
}

function declared(value: unknown): Tool {
  const { name, description, parameters, parametersJsonSchema } = asFields(value)
  return {
    name: asString(name),
    description: asString(description),
    schema: asFields(parametersJsonSchema ?? plainSchema(parameters)),
  }
}

/** Writes the type names of a schema in lower case, as JSON Schema does: `STRING` becomes `string`. */
function plainSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainSchema)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, inner]) => [
    name,
    name === 'type' && typeof inner === 'string' ? inner.toLowerCase() : plainSchema(inner),
  ])
  return Object.fromEntries(members) as Fields
}

function choice({ mode, allowedFunctionNames }: Fields): ToolChoice {
  const [name, ...others] = asList(allowedFunctionNames).map(asString)
  if (mode === 'NONE') return 'none'
  if (mode !== 'ANY') return 'auto'
  return name !== undefined && others.length === 0 ? { name } : 'required'
}

function jsonSchema({ responseMimeType, responseJsonSchema, responseSchema }: Fields): Fields | undefined {
  if (responseMimeType !== 'application/json') return undefined
  const schema = responseJsonSchema ?? plainSchema(responseSchema)
  return schema === undefined
    ? { type: 'object', properties: { answer: {} }, required: ['answer'] }
    : asFields(schema)
}

function steps(content: Fields): ConversationStep[] {
  const parts = partsOfContent(content)
  if (content.role === 'model')
    return [{ kind: 'model', calls: parts.filter(({ functionCall }) => functionCall !== undefined).length }]
  const own = parts.filter(({ functionResponse }) => functionResponse === undefined)
  return [
    ...parts.flatMap(({ functionResponse }): ConversationStep[] =>
      functionResponse === undefined
        ? []
        : [{ kind: 'result', text: resultText(asFields(asFields(functionResponse).response)) }],
    ),
    ...(own.length > 0
      ? [{ kind: 'user' as const, text: textOf(own), hasMedia: own.some(({ text }) => text === undefined) }]
      : []),
  ]
}

/** Returns the text of a function response: its `output` or `error`, or the whole object as JSON. */
function resultText(response: Fields): string {
  const text = response.output ?? response.error ?? response
  return typeof text === 'string' ? text : JSON.stringify(text)
}

function textOf(parts: readonly Fields[]): string {
  return parts.map(({ text }) => asString(text)).join('\n')
}

/** Renders a content as the model reads it, without signatures and thoughts. */
function transcribed(content: Fields): string {
  const parts = partsOfContent(content).filter(({ thought }) => thought !== true)
  const texts = parts.map(({ text, functionCall, functionResponse }) => {
    if (functionCall !== undefined) return JSON.stringify({ ...asFields(functionCall), id: undefined })
    if (functionResponse !== undefined)
      return JSON.stringify({ ...asFields(functionResponse), id: undefined })
    return typeof text === 'string' ? text : IMAGE_PLACEHOLDER
  })
  return `${asString(content.role) || 'user'}: ${texts.join('\n')}`
}
