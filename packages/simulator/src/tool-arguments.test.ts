import { expect, test } from 'vitest'
import { chatPrompt } from './chat-request.ts'
import { seededRandom } from './random.ts'
import { toolCalls } from './tool-calls.ts'

/** Arguments of the first call for a message with a forced tool. */
function argumentsFor(
  content: string,
  properties: Record<string, object>,
  required = Object.keys(properties),
) {
  const prompt = chatPrompt(
    {
      messages: [
        { role: 'system', content: 'Current working directory: /home/ada' },
        { role: 'user', content },
      ],
      tools: [
        { type: 'function', function: { name: 'it', parameters: { type: 'object', properties, required } } },
      ],
      tool_choice: { type: 'function', function: { name: 'it' } },
    },
    'demo-chat',
  )
  const [call] = toolCalls(prompt, seededRandom('x'))
  return JSON.parse(call?.input ?? '') as unknown
}

const TEXT = { type: 'string' }

test.each<[string, string, Record<string, object>, object]>([
  ['a path becomes absolute', 'Open src/a.ts', { file_path: TEXT }, { file_path: '/home/ada/src/a.ts' }],
  ['a path up the tree is resolved', 'Open ../b.txt', { path: TEXT }, { path: '/home/b.txt' }],
  ['an absolute path stays', 'Open /etc/hosts', { filePath: TEXT }, { filePath: '/etc/hosts' }],
  [
    'a path stays relative where the tool wants that',
    'Open a.ts',
    { file: { type: 'string', description: 'Path relative to the repository' } },
    { file: 'a.ts' },
  ],
  ['a folder is the one worked in', 'List it', { directory: TEXT }, { directory: '/home/ada' }],
  [
    'quoted texts are old and new',
    'Replace "one" by "two" in a.ts',
    { path: TEXT, old_string: TEXT, new_string: TEXT },
    { path: '/home/ada/a.ts', old_string: 'one', new_string: 'two' },
  ],
  [
    'a quoted text is the content',
    'Write "Good morning" to a.txt',
    { path: TEXT, content: TEXT },
    { path: '/home/ada/a.txt', content: 'Good morning' },
  ],
  ['a command is in quotes', 'Run `ls -l src`', { command: TEXT }, { command: 'ls -l src' }],
  ['a URL is found', 'See https://example.org/x?y=1.', { url: TEXT }, { url: 'https://example.org/x?y=1' }],
  ['a pattern of names is found', 'Find *.md files', { pattern: TEXT }, { pattern: '*.md' }],
  ['files are listed by a shell', 'List the files here', { command: TEXT }, { command: 'ls' }],
  ['an identifier has digits', 'Cancel order A-1234', { order_id: TEXT }, { order_id: 'A-1234' }],
  ['a number is found', 'Roll 3 dice', { count: { type: 'integer' } }, { count: 3 }],
  ['a value is named', 'Send it, city: Oslo, please', { city: TEXT }, { city: 'Oslo' }],
  [
    'quoted texts are given in turn',
    'Introduce "Ada" to "Bob"',
    { host: TEXT, guest: TEXT },
    { host: 'Ada', guest: 'Bob' },
  ],
  ['a task is the message', 'Find the bug', { prompt: TEXT }, { prompt: 'Find the bug' }],
])('the arguments of a forced tool are right for %s', (_, message, properties, expected) => {
  expect(argumentsFor(message, properties)).toEqual(expected)
})

test('the simulator fills optional tool arguments that the message mentions', () => {
  const members = {
    path: TEXT,
    limit: { type: 'integer' },
    offset: { type: 'integer' },
    unit: { enum: ['line', 'word'] },
  }
  expect(argumentsFor('Open a.txt', members, ['path'])).toEqual({ path: '/home/ada/a.txt' })
  expect(argumentsFor('Open a.txt with a limit of 5', members, ['path'])).toEqual({
    path: '/home/ada/a.txt',
    limit: 5,
  })
  expect(argumentsFor('Open a.txt word by word', members, ['path'])).toEqual({
    path: '/home/ada/a.txt',
    unit: 'word',
  })
})
