import { randomFrom } from '../../test/fixtures/random.ts'

/** Seed of the conversation, so that every run measures the same bytes. */
const SEED = 20
const TOOLS = [
  'read_file',
  'edit_file',
  'write_file',
  'list_files',
  'search',
  'run_command',
  'fetch_page',
  'plan',
]
const NAMES = [
  'config',
  'request',
  'user',
  'parseLine',
  'handler',
  'result',
  'options',
  'item',
  'toPath',
  'cache',
]

/** Lines of code as an agent reads and writes them; `NAME` is replaced by an identifier. */
const LINES = [
  `import { readFileSync } from 'node:fs'`,
  `export function NAME(path: string): string | undefined {`,
  `\tconst NAME = readFileSync(path, "utf8").split("\\n")`,
  `\tif (!/^\\s*(?:#|\\/\\/)/.test(NAME)) continue // NAME is no comment`,
  `\t\tthrow new Error(\`cannot read "\${NAME}": \${error}\`)`,
  `\tfor (const [NAME, value] of Object.entries(options)) {`,
  `\t\tconsole.log("NAME:\\t" + JSON.stringify(value, null, 2))`,
  `    return f"{NAME!r} -> {value:>10.2f}\\n"`,
  `    "NAME": { "type": "string", "default": "C:\\\\Users\\\\NAME" },`,
  `\tawait NAME.query('SELECT id, name FROM NAME WHERE id = $1', [id])`,
  `  <div className="NAME" onClick={() => set({ ...state, NAME: true })}>`,
  `\t\texpect(NAME("naïve – 詩")).toEqual({ ok: true, text: 'naïve – 詩' })`,
  `\t}`,
  ``,
  `}`,
]
/** Lines of a file of settings. */
const SETTINGS = [
  `    "NAME": { "enabled": true, "path": "src/NAME", "include": ["**/*.ts", "**/*.json"] },`,
  `    "description": "The \\"NAME\\" of a request, as in C:\\\\work\\\\NAME",`,
  `    "scripts": { "NAME": "node --test \\"test/**/*.test.js\\" && echo \\"NAME\\"" },`,
  `    "NAME": [1, 2, 3],`,
  `  },`,
  `  {`,
]
const OUTPUT = [
  `\u001b[32m✓\u001b[39m src/NAME.test.ts \u001b[2m(12 tests)\u001b[22m\u001b[32m 48\u001b[2mms\u001b[22m\u001b[39m`,
  `\u001b[31m×\u001b[39m NAME > reads "a\\tb" as two words`,
  `  at NAME (/home/user/project/src/NAME.ts:41:17)`,
  `src/NAME.ts:17:\tconst NAME = "value"`,
]
const PROSE = [
  'The function NAME does not handle an empty file; I will read it and add a check.',
  'Let me look at how `NAME` is called, and whether the tests cover it.',
  'Please make "NAME" configurable, and keep the old name as an alias.',
]

/**
 * Fields of a chat request as a coding agent sends it: tools, and a history of code, settings, output of
 * commands, and edits. Some files have CRLF line ends.
 */
export interface AgentConversation {
  readonly tools: readonly object[]
  readonly messages: readonly object[]
}

/** Conversation whose JSON has about `bytes` bytes, and more than 12 KB. */
export function agentConversation(bytes: number): AgentConversation {
  const random = randomFrom(SEED)
  const oneOf = (values: readonly string[]): string => values[Math.floor(random() * values.length)] ?? ''
  const line = (values: readonly string[]): string => oneOf(values).replaceAll('NAME', () => oneOf(NAMES))
  const lines = (values: readonly string[], count: number): string[] =>
    Array.from({ length: count }, () => line(values))

  // As random as those of OpenAI, with another generator, so that the texts stay the same.
  const randomOfIds = randomFrom(SEED + 1)
  const idOfCall = (): string =>
    `call_${Array.from({ length: 24 }, () => Math.floor(randomOfIds() * 36).toString(36)).join('')}`
  const called = (id: string, name: string, input: object): object => ({
    role: 'assistant',
    content: line(PROSE),
    tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(input) } }],
  })
  const turn = (index: number): object[] => {
    const isSettings = index % 3 === 2
    const path = `/home/user/project/src/${oneOf(NAMES)}.${isSettings ? 'json' : 'ts'}`
    const [source, lineEnd] = isSettings ? [SETTINGS, '\r\n'] : [LINES, '\n']
    const [read, edit, run] = [idOfCall(), idOfCall(), idOfCall()]
    const numbered = lines(source, 60).map((text, at) => `${String(at + 1).padStart(6)}\t${text}`)
    return [
      { role: 'user', content: line(PROSE) },
      called(read, 'read_file', { path, limit: 60 }),
      { role: 'tool', tool_call_id: read, content: numbered.join(lineEnd) },
      called(edit, 'edit_file', {
        path,
        old_string: lines(source, 8).join(lineEnd),
        new_string: lines(source, 12).join(lineEnd),
      }),
      { role: 'tool', tool_call_id: edit, content: `The file ${path} has been updated.` },
      called(run, 'run_command', { command: `npm test -- "${path}" 2>&1 | tail -n 20` }),
      { role: 'tool', tool_call_id: run, content: lines(OUTPUT, 20).join('\n') },
    ]
  }
  const tools = TOOLS.map((name) => ({
    type: 'function',
    function: {
      name,
      description: lines(PROSE, 6).join('\n'),
      parameters: {
        type: 'object',
        properties: {
          path: { type: 'string', description: 'Absolute path of the file, as in "/home/user/a.ts"' },
          limit: { type: 'integer', minimum: 1, description: 'Maximum number of lines' },
          mode: { type: 'string', enum: ['all', 'first', 'none'] },
        },
        required: ['path'],
        additionalProperties: false,
      },
    },
  }))
  const messages: object[] = [{ role: 'system', content: lines(PROSE, 40).join('\n\n') }]
  let length = Buffer.byteLength(JSON.stringify({ tools, messages }))
  for (let index = 0; length < bytes; index++) {
    const added = turn(index)
    messages.push(...added)
    length += Buffer.byteLength(JSON.stringify(added))
  }
  messages.push({ role: 'user', content: line(PROSE) })
  return { tools, messages }
}
