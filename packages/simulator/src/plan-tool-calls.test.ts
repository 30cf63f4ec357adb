import { expect, test } from 'vitest'
import type { Tool } from './prompt.ts'
import { planToolCalls } from './plan-tool-calls.ts'

/** A tool with required members of type string. */
function tool(name: string, required: readonly string[], description = ''): Tool {
  const properties = Object.fromEntries(required.map((member) => [member, { type: 'string' }]))
  return { name, description, schema: { type: 'object', properties, required } }
}

/** Tools of a coding agent. */
const AGENT_TOOLS = [
  tool(
    'Agent',
    ['description', 'prompt'],
    'Launch a new agent to handle complex tasks. Reads, writes and searches.',
  ),
  tool('Bash', ['command'], 'Executes a bash command and returns its output.'),
  tool('Edit', ['file_path', 'old_string', 'new_string'], 'Performs exact string replacement in a file.'),
  tool('Glob', ['pattern'], 'Fast file pattern matching'),
  tool('ListAgents', [], 'Lists agents that messages can be sent to'),
  tool('Read', ['file_path'], 'Reads a file from the local filesystem.'),
  tool('Skill', ['skill'], 'Invoke a skill.'),
  tool('ToolSearch', ['query'], 'Fetches full schema definitions for deferred tools'),
  tool('WebFetch', ['url'], 'Fetches content from a URL'),
  tool('Write', ['file_path', 'content'], 'Writes a file to the local filesystem.'),
]

/** The planned calls, as `Tool path`. */
function plan(message: string, tools: readonly Tool[] = AGENT_TOOLS): string[] {
  return planToolCalls(message, tools).map(({ tool: { name }, path }) =>
    path === undefined ? name : `${name} ${path}`,
  )
}

test.each([
  ['Read notes.txt and tell me what it says', ['Read notes.txt']],
  ['"Read notes.txt and tell me what it says"', ['Read notes.txt']],
  ['What does docs/plan.md say?', ['Read docs/plan.md']],
  ['Please summarize ./src/main.ts.', ['Read ./src/main.ts']],
  ['Explain src/gateway/main.ts to me', ['Read src/gateway/main.ts']],
  ['Read @a.txt and b.txt, please', ['Read a.txt', 'Read b.txt']],
  ['Read a.txt, b.txt and c.txt', ['Read a.txt', 'Read b.txt']],
  ['Read "my notes.txt"', ['Read my notes.txt']],
  ['Find notes.txt and read it', ['Glob notes.txt', 'Read notes.txt']],
  ['Write "hello" to greeting.txt', ['Write greeting.txt']],
  ['Replace "one" with "two" in a.txt', ['Edit a.txt']],
  ['Run `ls -la`', ['Bash']],
  ['List the files here', ['Bash']],
  ['Find *.md files', ['Glob']],
  ['Run git status and tell me what changed', ['Bash']],
  ['Fetch https://example.com/a.html', ['WebFetch']],
  ['Use the Read tool on notes.txt', ['Read notes.txt']],
])('the simulator plans the expected tool calls for the message: %s', (message, expected) => {
  expect(plan(message)).toEqual(expected)
})

test.each([
  ['a question about something else', 'Tell me about lighthouses'],
  ['a tool whose name is an everyday word', 'Finish the task with the skill of an agent'],
  ['a file that is not named', 'Read it to me'],
  ['a command that is not given', 'Run the tests'],
  ['texts to replace that are not given', 'Edit the greeting'],
  ['agents where others are to be listed', 'List the planets'],
])('the simulator calls no tool for %s', (_, message) => {
  expect(plan(message)).toEqual([])
})

test('the simulator does not overwrite a file only because a message mentions writing', () => {
  expect(plan('Read notes.txt and write me a summary')).toEqual(['Read notes.txt'])
  expect(plan('Show me how to write to notes.txt')).toEqual(['Read notes.txt'])
})

test('the simulator calls tools that the message names, in the order of the message, and at most two', () => {
  const tools = ['get_time', 'get_weather', 'get_news'].map((name) => tool(name, ['city']))
  expect(plan('For Lisbon use get_weather, get_time and get_news', tools)).toEqual([
    'get_weather',
    'get_time',
  ])
})

test('the simulator finds a tool by the words of its name, in snake case and in camel case', () => {
  const tools = [
    tool('mcp__maps__find_route', ['from', 'to']),
    tool('getWeatherForecast', ['city']),
    tool('send_email', ['to']),
  ]
  expect(plan('What will the weather be in Lisbon?', tools)).toEqual(['getWeatherForecast'])
  expect(plan('Send an email to Ada', tools)).toEqual(['send_email'])
})

test('the simulator finds the tools of an application although the message lacks their exact names', () => {
  const tools = [
    tool('search_products', ['query'], 'Search the catalogue'),
    tool('create_order', ['product_id', 'items'], 'Places an order'),
  ]
  expect(plan('I need you to search for running shoes', tools)).toEqual(['search_products'])
  expect(plan('I would like to create an order of the red ones', tools)).toEqual(['create_order'])
})

test('the simulator finds a tool by its description if there are few tools', () => {
  expect(
    plan('How warm is it in Lisbon?', [tool('lookup', ['city'], 'How warm a place is right now')]),
  ).toEqual(['lookup'])
  expect(plan('Read notes.txt', [tool('lookup', ['path'], 'Reads a document')])).toEqual(['lookup notes.txt'])
})

/** Tools of an agent that reads through its shell and edits by patches. */
const SHELL_TOOLS = [
  tool('exec_command', ['cmd'], 'Runs a command in a PTY.'),
  tool('write_stdin', ['session_id'], 'Writes characters to a session.'),
  tool('view_image', ['path'], 'View a local image file.'),
  tool('get_goal', [], 'Get the current goal.'),
  tool('create_goal', ['objective'], 'Create a goal.'),
]
const PATCHING_TOOLS = [...SHELL_TOOLS, tool('apply_patch', ['input'], 'Edits files.')]

test.each([
  ['Read notes.txt and tell me what it says', ['exec_command notes.txt']],
  ['Replace "gate" with "tower" in notes.txt', ['exec_command notes.txt', 'apply_patch notes.txt']],
  ['Write "hello" to greeting.txt', ['apply_patch greeting.txt']],
  ['Read notes.txt and write me a summary', ['exec_command notes.txt']],
  ['Does notes.txt say "write to me"?', ['exec_command notes.txt']],
  ['Run `ls`', ['exec_command']],
  ['Create something', []],
  ['What is in photo.png?', []],
])('the simulator plans the expected shell commands and patches for: %s', (message, expected) => {
  expect(plan(message, PATCHING_TOOLS)).toEqual(expected)
})

test("the simulator changes a file by a patch in the shell only if the agent's prompt allows this", () => {
  const message = 'Write "hello" to greeting.txt'
  expect(plan(message, SHELL_TOOLS)).toEqual(['exec_command greeting.txt'])
  expect(planToolCalls(message, SHELL_TOOLS, true)).toMatchObject([{ path: 'greeting.txt', task: 'patch' }])
})

test('the simulator calls a tool without a path parameter once, whatever in the message looks like a path', () => {
  expect(plan('Compare the weather in Node.js and Vue.js', [tool('get_weather', ['city'])])).toHaveLength(1)
})

test('the simulator prefers a specific tool to the shell', () => {
  const tools = [tool('bash', ['command']), tool('list_directory', ['path'])]
  expect(plan('List the files in src/', tools)).toEqual(['list_directory src/'])
})
