import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DEMO_MODELS } from '@sluice/simulator'
import { type DemoFixture, startDemoFixture } from '../fixtures/demo-fixture.ts'

type Item = OpenAI.Responses.ResponseOutputItem
type Input = OpenAI.Responses.ResponseInputItem
type Request = Omit<OpenAI.Responses.ResponseCreateParamsStreaming, 'stream'>

let fixture: DemoFixture
let client: OpenAI
beforeAll(async () => {
  fixture = await startDemoFixture()
  client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
})
afterAll(() => fixture?.close())

const MODELS = [...DEMO_MODELS.chat, ...DEMO_MODELS.messages, ...DEMO_MODELS.responses]
const NOTES = ['Meet at the gate.', 'Bring a coat.']

/** A tool as Codex declares its functions. */
function declared(name: string, properties: object, required: readonly string[]): object {
  const parameters = { type: 'object', properties, required, additionalProperties: false }
  return { type: 'function', name, description: `The tool ${name}.`, strict: false, parameters }
}

const TEXT = { type: 'string' }
const SHELL = [
  declared('exec_command', { cmd: TEXT, workdir: TEXT, tty: { type: 'boolean' } }, ['cmd']),
  declared('write_stdin', { session_id: { type: 'number' }, chars: TEXT }, ['session_id']),
  declared('view_image', { path: TEXT }, ['path']),
  declared('get_goal', {}, []),
]
const PATCHES = {
  type: 'custom',
  name: 'apply_patch',
  description: 'Edits files.',
  format: {
    type: 'grammar',
    syntax: 'lark',
    definition: 'start: "*** Begin Patch" LF hunk+ "*** End Patch"',
  },
}
const SEARCHES = [
  {
    type: 'tool_search',
    execution: 'client',
    description: 'Searches for further tools.',
    parameters: { type: 'object', properties: { query: TEXT }, required: ['query'] },
  },
  { type: 'web_search', external_web_access: true, search_content_types: ['text', 'image'] },
]
const AGENTS = {
  type: 'namespace',
  name: 'agents',
  description: 'Other agents.',
  tools: [
    declared('spawn_agent', { message: { type: 'string', encrypted: true } }, ['message']),
    declared('wait', { id: TEXT }, ['id']),
  ],
}

function message(role: string, text: string): object {
  return { type: 'message', id: `msg_${role}_${text.length}`, role, content: [{ type: 'input_text', text }] }
}

/** A request as Codex sends it for a prompt: the tools are beside the input, or among its items. */
function asked(
  model: string,
  prompt: string,
  tools: readonly object[],
  among: readonly object[] = [],
): Request {
  const input = [
    ...(among.length > 0 ? [{ type: 'additional_tools', id: 'at_1', role: 'developer', tools: among }] : []),
    message('developer', 'You are an agent. Edit files with `apply_patch`.'),
    message('user', '<environment_context>\n  <cwd>/home/ada</cwd>\n</environment_context>'),
    message('user', prompt),
  ]
  return {
    model,
    input: input as Input[],
    tools: tools as OpenAI.Responses.Tool[],
    tool_choice: 'auto',
    parallel_tool_calls: true,
    reasoning: { effort: 'medium', summary: 'auto' },
    store: false,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: 'thread-1',
    text: { verbosity: 'low' },
    client_metadata: { thread_id: 'thread-1' },
  } as Request
}

/** Reads a stream as Codex does: an item counts when it is done, and the stream must be completed. */
async function itemsOf(request: Request): Promise<Item[]> {
  const items: Item[] = []
  let isCompleted = false
  for await (const event of await client.responses.create({ ...request, stream: true })) {
    if (event.type === 'response.output_item.done') items.push(event.item)
    isCompleted = event.type === 'response.completed'
  }
  expect(isCompleted).toBe(true)
  return items
}

/** The next request, with the items of the response and the outputs of its calls. */
async function continued(request: Request, items: readonly Item[], outputs: readonly object[]) {
  const sentAgain = items.map((item) => ({ ...item, id: undefined }))
  return await itemsOf({
    ...request,
    input: [...(request.input as Input[]), ...sentAgain, ...outputs] as Input[],
  })
}

function callIn(items: readonly Item[], type: string): Record<string, unknown> & { call_id: string } {
  const call = items.find((item) => item.type === type)
  if (!call) throw new Error(`no ${type} among ${items.map((item) => item.type).join()}`)
  return call as unknown as Record<string, unknown> & { call_id: string }
}

describe.each(MODELS)('Codex on %s', (model) => {
  const change = 'Replace "gate" with "tower" in notes.txt'
  const shown = `Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n${NOTES.join('\n')}\n`
  const patch =
    '*** Begin Patch\n*** Update File: notes.txt\n@@\n-Meet at the gate.\n+Meet at the tower.\n*** End Patch\n'

  test('the simulated model for Codex reads a file with a shell command, and changes it with a patch', async () => {
    const request = asked(model, change, [...SHELL, PATCHES, AGENTS, ...SEARCHES])
    const first = await itemsOf(request)
    const command = callIn(first, 'function_call')
    expect(command).toMatchObject({ name: 'exec_command', arguments: '{"cmd":"cat notes.txt"}' })
    const output = { type: 'function_call_output', call_id: command.call_id, output: shown }
    const second = await continued(request, first, [output])
    const patching = callIn(second, 'custom_tool_call')
    expect(patching).toMatchObject({ name: 'apply_patch', input: patch })
    const patched = {
      type: 'custom_tool_call_output',
      call_id: patching.call_id,
      output: [{ type: 'input_text', text: 'Success. Updated the following files:\nM notes.txt' }],
    }
    const so_far = { ...request, input: [...(request.input as Input[]), ...first, output] as Input[] }
    const last = await continued(so_far, second, [patched])
    expect(JSON.stringify(last.at(-1))).toContain('M notes.txt')
  })

  test('the simulated model for Codex applies the patch with its shell where it has no patch tool', async () => {
    const request = asked(model, 'Write "hello" to greeting.txt', [...SHELL, AGENTS])
    const { arguments: args } = callIn(await itemsOf(request), 'function_call')
    expect(JSON.parse(String(args))).toEqual({
      cmd: "apply_patch <<'PATCH'\n*** Begin Patch\n*** Add File: greeting.txt\n+hello\n*** End Patch\nPATCH",
    })
  })

  test('the simulated model for Codex runs a script with a custom tool of a namespace that an input item declares', async () => {
    const functions = {
      type: 'namespace',
      name: 'functions',
      description: '',
      tools: [
        { type: 'custom', name: 'exec', description: 'Runs a script.', format: PATCHES.format },
        declared('wait', { cell_id: TEXT }, ['cell_id']),
      ],
    }
    const { tools: _, ...request } = asked(model, 'text(1 + 1)', [], [functions, AGENTS])
    const first = await itemsOf({
      ...request,
      tool_choice: { type: 'custom', name: 'exec', namespace: 'functions' } as never,
    })
    const script = callIn(first, 'custom_tool_call')
    expect(script).toMatchObject({ name: 'exec', namespace: 'functions', input: 'text(1 + 1)' })
    const output = { type: 'custom_tool_call_output', call_id: script.call_id, output: '2' }
    expect(JSON.stringify(await continued(request, first, [output]))).toContain('2.')
  })

  test('the simulated model for Codex calls a tool that it found with a tool search', async () => {
    const request = asked(model, 'What is the weather in Lisbon?', [...SHELL, ...SEARCHES])
    const search = { type: 'tool_search_call', call_id: 'call_s', execution: 'client', status: 'completed' }
    const found = {
      type: 'tool_search_output',
      call_id: 'call_s',
      execution: 'client',
      status: 'completed',
      tools: [{ ...AGENTS, name: 'sky', tools: [declared('get_weather', { city: TEXT }, ['city'])] }],
    }
    const items = [{ ...search, arguments: { query: 'weather' } }, found]
    const input = [...(request.input as Input[]).slice(0, -1), ...items, (request.input as Input[]).at(-1)]
    expect(callIn(await itemsOf({ ...request, input: input as Input[] }), 'function_call')).toMatchObject({
      name: 'get_weather',
      namespace: 'sky',
      arguments: '{"city":"Lisbon"}',
    })
  })
})
