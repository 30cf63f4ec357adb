import { createHmac } from 'node:crypto'
import { type McpServerBehaviour, type Offered, textTool, type ToolCall, ToolError } from '@sluice/simulator'

const IMAGE =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const SOUND = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='

type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {}

function tool(name: string, answer: (call: ToolCall) => Fields | Promise<Fields>): Offered {
  return { definition: { name, description: `Tests ${name}`, inputSchema: { type: 'object' } }, answer }
}

const content = (...blocks: readonly Fields[]): Fields => ({ content: blocks })
const text = (words: string): Fields => ({ type: 'text', text: words })
const resource = (uri: string): Fields => ({
  type: 'resource',
  resource: { uri, mimeType: 'text/plain', text: 'This is an embedded resource content.' },
})
const image = { type: 'image', data: IMAGE, mimeType: 'image/png' }

const ELICIT = {
  method: 'elicitation/create',
  params: {
    message: 'What is your name?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  },
}
const SAMPLE = {
  method: 'sampling/createMessage',
  params: {
    messages: [{ role: 'user', content: { type: 'text', text: 'What is the capital of France?' } }],
    maxTokens: 100,
  },
}
const ROOTS = { method: 'roots/list', params: {} }

const required = (inputRequests: Fields, requestState?: string): Fields => ({
  resultType: 'input_required',
  inputRequests,
  ...(requestState !== undefined && { requestState }),
})

const sign = (state: string): string =>
  `${state}.${createHmac('sha256', 'conformance').update(state).digest('hex')}`

function stateOf({ params }: ToolCall): string | undefined {
  const given = params['requestState']
  if (typeof given !== 'string') return undefined
  const state = given.split('.')[0] ?? ''
  if (sign(state) !== given) throw new ToolError(-32_602, 'requestState is not valid')
  return state
}

/** A tool that asks for input, and is done once it has an object for each of its requests. */
function asking(name: string, requests: Fields, state?: string): Offered {
  return tool(name, (call) => {
    const given = fieldsOf(call.params['inputResponses'])
    const isComplete = Object.keys(requests).every((key) => typeof given[key] === 'object')
    const known = stateOf(call)
    if (!isComplete || (state !== undefined && known === undefined))
      return required(requests, state === undefined ? undefined : sign(state))
    return content(text(`received ${JSON.stringify(given)}`))
  })
}

const TOOLS: readonly Offered[] = [
  textTool(
    { name: 'simple_text', description: 'Tests text' },
    () => 'This is a simple text response for testing.',
  ),
  tool('image_content', () => content(image)),
  tool('audio_content', () => content({ type: 'audio', data: SOUND, mimeType: 'audio/wav' })),
  tool('embedded_resource', () => content(resource('test://embedded-resource'))),
  tool('multiple_content_types', () => content(text('Multiple:'), image, resource('test://mixed'))),
  tool('tool_with_logging', (call) => {
    for (const data of ['started', 'processing', 'completed'])
      call.notify('notifications/message', { level: 'info', data })
    return content(text('done'))
  }),
  tool('logging_tool', (call) => {
    call.notify('notifications/message', { level: 'info', data: 'logged' })
    return content(text('done'))
  }),
  tool('tool_with_progress', (call) => {
    for (const progress of [0, 50, 100])
      call.notify('notifications/progress', { progress, total: 100, message: `step ${progress}` })
    return content(text('done'))
  }),
  tool('error_handling', () => ({
    ...content(text('This tool intentionally returns an error for testing')),
    isError: true,
  })),
  tool('missing_capability', ({ meta }) => {
    const declared = fieldsOf(meta['io.modelcontextprotocol/clientCapabilities'])
    if (declared['sampling'] === undefined)
      throw new ToolError(-32_021, 'Missing required client capability', {
        requiredCapabilities: { sampling: {} },
      })
    return content(text('done'))
  }),
  tool('streaming_elicitation', () => required({ name: ELICIT })),
  asking('input_required_result_elicitation', { user_name: ELICIT }),
  asking('input_required_result_sampling', { capital: SAMPLE }),
  asking('input_required_result_list_roots', { roots: ROOTS }),
  asking('input_required_result_request_state', { confirm: ELICIT }, 'first'),
  asking('input_required_result_tampered_state', { confirm: ELICIT }, 'first'),
  asking('input_required_result_multiple_inputs', { name: ELICIT, capital: SAMPLE, roots: ROOTS }, 'all'),
  tool('input_required_result_multi_round', (call) => {
    const state = stateOf(call)
    if (state === undefined) return required({ step1: ELICIT }, sign('one'))
    return state === 'one' ? required({ step2: ELICIT }, sign('two')) : content(text('done'))
  }),
  tool('input_required_result_capabilities', ({ meta }) => {
    const declared = fieldsOf(meta['io.modelcontextprotocol/clientCapabilities'])
    return required({
      ...(declared['sampling'] !== undefined && { capital: SAMPLE }),
      ...(declared['elicitation'] !== undefined && { name: ELICIT }),
    })
  }),
]

const message = (block: Fields): Fields => ({ messages: [{ role: 'user', content: block }] })
const PROMPTS: readonly Offered[] = [
  {
    definition: { name: 'simple_prompt', description: 'a prompt' },
    answer: () => message(text('a simple prompt')),
  },
  {
    definition: {
      name: 'prompt_with_arguments',
      description: 'a prompt',
      arguments: [
        { name: 'arg1', required: true },
        { name: 'arg2', required: true },
      ],
    },
    answer: ({ arguments: { arg1, arg2 } }) =>
      message(text(`arg1='${String(arg1)}', arg2='${String(arg2)}'`)),
  },
  {
    definition: {
      name: 'prompt_with_embedded_resource',
      description: 'a prompt',
      arguments: [{ name: 'resourceUri' }],
    },
    answer: ({ arguments: { resourceUri } }) => message(resource(String(resourceUri))),
  },
  { definition: { name: 'prompt_with_image', description: 'a prompt' }, answer: () => message(image) },
  {
    definition: { name: 'input_required_result_prompt', description: 'a prompt' },
    answer: ({ params }) =>
      params['inputResponses'] === undefined ? required({ context: ELICIT }) : message(text('done')),
  },
]

/** What the conformance suite of the protocol expects of a server, for a gateway that calls the server `test`. */
export function conformanceServer(versions: readonly string[]): McpServerBehaviour {
  return {
    name: 'conformance',
    versions,
    tools: () => TOOLS,
    prompts: PROMPTS,
    resources: [
      {
        definition: { uri: 'test://static-text', name: 'Static text', mimeType: 'text/plain' },
        answer: () => ({ contents: [{ uri: 'test://static-text', mimeType: 'text/plain', text: 'static' }] }),
      },
      {
        definition: { uri: 'test://static-binary', name: 'Static binary', mimeType: 'image/png' },
        answer: () => ({ contents: [{ uri: 'test://static-binary', mimeType: 'image/png', blob: IMAGE }] }),
      },
    ],
    templates: [
      {
        definition: {
          uriTemplate: 'test://template/{id}/data',
          name: 'Template',
          mimeType: 'application/json',
        },
        answer: ({ params: { uri } }) => ({
          contents: [
            { uri, mimeType: 'application/json', text: JSON.stringify({ id: String(uri).split('/')[3] }) },
          ],
        }),
      },
    ],
    ttlMs: 1_000,
    complete: () => ({ values: ['paris'], total: 1, hasMore: false }),
  }
}
