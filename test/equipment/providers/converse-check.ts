type Json = Readonly<Record<string, unknown>>

/** Members that a request may have. */
const TAKEN = new Set([
  'messages',
  'system',
  'inferenceConfig',
  'toolConfig',
  'additionalModelRequestFields',
  'outputConfig',
  'serviceTier',
  'guardrailConfig',
  'performanceConfig',
  'requestMetadata',
])
const INFERENCE = new Set(['maxTokens', 'temperature', 'topP', 'stopSequences'])
const BLOCKS = new Set([
  'text',
  'image',
  'document',
  'video',
  'audio',
  'toolUse',
  'toolResult',
  'reasoningContent',
  'cachePoint',
  'guardContent',
  'citationsContent',
])
const FORMATS: Readonly<Record<string, RegExp>> = {
  image: /^(?:png|jpeg|gif|webp)$/,
  document: /^(?:pdf|csv|doc|docx|xls|xlsx|html|txt|md)$/,
  video: /^(?:mkv|mov|mp4|webm|flv|mpeg|mpg|wmv|three_gp)$/,
  audio: /^(?:mp3|opus|wav|aac|flac|mp4|ogg|mkv|m4a|webm)$/,
}
const CALL_ID = /^[\w-]{1,64}$/
const TOOL_NAME = /^[\w-]{1,64}$/
const DOCUMENT_NAME = /^(?!.*\s\s)[A-Za-z\d\s()[\]-]+$/

/** Why Bedrock's Converse API refuses a request for this model; undefined if it accepts it. */
export function converseError(model: string, body: Json): string | undefined {
  try {
    checkRequest(model, body)
    return undefined
  } catch (error) {
    if (error instanceof Refused) return error.message
    throw error
  }
}

class Refused extends Error {}

function demand(holds: unknown, message: string): asserts holds {
  if (!holds) throw new Refused(message)
}

function checkRequest(model: string, body: Json): void {
  const extra = Object.keys(body).find((name) => !TAKEN.has(name))
  demand(extra === undefined, `${extra}: Extra inputs are not permitted`)
  const messages = listOf(body['messages'])
  demand(messages.length > 0, 'messages: at least one is required')
  const facts = new RequestFacts(model)
  for (const block of listOf(body['system'])) facts.checkBlock(block, 'user')
  facts.names.clear()
  for (const [at, message] of messages.entries()) {
    demand(
      message['role'] === (at % 2 === 0 ? 'user' : 'assistant'),
      'A conversation must alternate between user and assistant roles, beginning with a user message.',
    )
    facts.checkTurn(message['role'] as string, listOf(message['content']), `messages.${at}.content`)
  }
  demand(
    facts.open.size === 0,
    'Expected toolResult blocks for each of the toolUse blocks of the previous turn',
  )
  checkTools(model, body['toolConfig'] as Json | undefined, facts.usedTools)
  checkInference((body['inferenceConfig'] ?? {}) as Json)
  const format = (body['outputConfig'] as { textFormat?: { structure: { jsonSchema: Json } } } | undefined)
    ?.textFormat
  const schema = format?.structure.jsonSchema['schema']
  demand(!format || (typeof schema === 'string' && JSON.parse(schema)), 'outputConfig: the schema is a text')
  demand(!format || !/llama|nova|titan/.test(model), `This model doesn't support the outputConfig field.`)
}

class RequestFacts {
  readonly open = new Set<string>()
  readonly names = new Set<unknown>()
  usedTools = false
  readonly #model: string

  constructor(model: string) {
    this.#model = model
  }

  checkTurn(role: string, blocks: readonly Json[], path: string): void {
    demand(blocks.length > 0, `The content field in the Message object at ${path} is empty.`)
    const answered = new Set(this.open)
    this.open.clear()
    for (const block of blocks) {
      this.checkBlock(block, role)
      const result = block['toolResult'] as Json | undefined
      if (!result) continue
      const id = String(result['toolUseId'])
      demand(answered.delete(id), `${path}: a toolResult has no toolUse with its id in the previous turn`)
    }
    demand(answered.size === 0, `${path}: Expected toolResult blocks for: ${[...answered].join()}`)
    const kinds = new Set(blocks.map((block) => Object.keys(block)[0]))
    demand(!kinds.has('document') || kinds.has('text'), `${path}: a text block is required with documents`)
    const mixes = kinds.size > 1 && (kinds.has('toolUse') || kinds.has('toolResult'))
    demand(
      !mixes || !this.#model.includes('llama'),
      `${path}: Conversation blocks and tool result blocks cannot be provided in the same turn.`,
    )
  }

  checkBlock(block: Json, role: string): void {
    const [kind = '', ...others] = Object.keys(block)
    demand(others.length === 0 && BLOCKS.has(kind), `a content block is a union of one member: ${kind}`)
    const value = block[kind] as Json
    const format = FORMATS[kind]
    if (format) checkMedia(kind, value, format, role)
    switch (kind) {
      case 'text':
        demand(String(block['text']).trim() !== '', 'The text field in the ContentBlock object is blank.')
        break
      case 'document':
        demand(
          DOCUMENT_NAME.test(String(value['name'])),
          'The document file name can only contain some characters',
        )
        demand(!this.names.has(value['name']), 'Duplicate document names')
        this.names.add(value['name'])
        break
      case 'toolUse':
        demand(role === 'assistant', 'toolUse blocks are for the assistant')
        demand(CALL_ID.test(String(value['toolUseId'])), 'toolUseId: wrong form')
        demand(TOOL_NAME.test(String(value['name'])), 'toolUse.name: wrong form')
        demand(
          isObject(value['input']),
          'toolUse.input: The format of the value is invalid. Provide a json object',
        )
        this.open.add(String(value['toolUseId']))
        this.usedTools = true
        break
      case 'toolResult':
        this.usedTools = true
        demand(role === 'user', 'toolResult blocks are for the user')
        demand(listOf(value['content']).length > 0, 'toolResult.content: must not be empty')
        for (const inner of listOf(value['content'])) this.checkBlock(inner, role)
        demand(
          value['status'] === undefined || /nova|claude/.test(this.#model),
          `This model doesn't support status.`,
        )
        break
      case 'reasoningContent':
        demand(role === 'assistant', 'reasoningContent blocks are for the assistant')
        break
      case 'cachePoint':
        demand(value['type'] === 'default', 'cachePoint.type: wrong')
        demand(
          /nova|claude/.test(this.#model),
          'You invoked an unsupported model or your request did not allow prompt caching.',
        )
        demand(value['ttl'] === undefined || this.#model.includes('claude'), 'cachePoint.ttl: not supported')
    }
  }
}

function checkMedia(kind: string, value: Json, format: RegExp, role: string): void {
  demand(role === 'user', `${kind} blocks are for the user`)
  demand(format.test(String(value['format'])), `${kind}.format: Member must satisfy enum value set`)
  const bytes = String((value['source'] as Json)['bytes'])
  const isBase64 = Buffer.from(bytes, 'base64').toString('base64') === bytes
  demand(isBase64 && bytes !== '', `${kind}.source.bytes: no base64`)
}

function checkTools(model: string, config: Json | undefined, areUsed: boolean): void {
  demand(
    config || !areUsed,
    'The toolConfig field must be defined when using toolUse and toolResult content blocks.',
  )
  if (!config) return
  const tools = listOf(config['tools'])
  demand(tools.length > 0, 'toolConfig.tools: at least one is required')
  for (const tool of tools) {
    if (tool['cachePoint']) {
      demand(model.includes('claude'), 'toolConfig: cache points are not supported here')
      continue
    }
    const spec = tool['toolSpec'] as Json
    demand(TOOL_NAME.test(String(spec['name'])), 'toolSpec.name: wrong form')
    demand(spec['description'] !== '', 'toolSpec.description: must not be empty')
    const schema = (spec['inputSchema'] as Json)['json']
    demand(
      isObject(schema) && schema['type'] === 'object',
      `toolSpec.inputSchema.json.type must be one of: object.`,
    )
    demand(
      spec['strict'] === undefined || !/nova|llama/.test(model),
      `This model doesn't support strict tools.`,
    )
  }
  const choice = config['toolChoice'] as Json | undefined
  if (!choice) return
  const [kind = '', ...others] = Object.keys(choice)
  demand(others.length === 0 && ['auto', 'any', 'tool'].includes(kind), 'toolChoice: a union of one member')
  demand(
    kind === 'auto' || !model.includes('llama'),
    `This model doesn't support the toolConfig.toolChoice.${kind} field.`,
  )
  demand(
    kind !== 'tool' || /nova|claude/.test(model),
    `This model doesn't support the toolConfig.toolChoice.tool field.`,
  )
}

function checkInference(config: Json): void {
  const extra = Object.keys(config).find((name) => !INFERENCE.has(name))
  demand(extra === undefined, `inferenceConfig.${extra}: Extra inputs are not permitted`)
  const { maxTokens, temperature } = config
  demand(maxTokens === undefined || Number(maxTokens) >= 1, 'inferenceConfig.maxTokens: at least 1')
  demand(
    temperature === undefined || (Number(temperature) >= 0 && Number(temperature) <= 1),
    'inferenceConfig.temperature: Member must have value less than or equal to 1',
  )
  for (const stop of (config['stopSequences'] ?? []) as unknown[]) demand(stop !== '', 'stopSequences: empty')
}

function listOf(value: unknown): readonly Json[] {
  demand(value === undefined || Array.isArray(value), 'expected a list')
  return (value ?? []) as readonly Json[]
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
