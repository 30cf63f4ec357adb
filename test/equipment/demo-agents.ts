/** A coding agent as its requests show it: its texts around the user's prompt, and its tools. */
export interface DemoAgent {
  readonly name: string
  readonly dialect: 'chat' | 'messages'
  readonly system: string
  /** The text parts of the user's message. */
  readonly userParts: (prompt: string) => readonly string[]
  /** A message with the system role after the user's message. */
  readonly aside?: string
  readonly tools: readonly DemoTool[]
  /** The result of the agent's read tool for a file. */
  readonly shown: (path: string, content: string) => string
}

export interface DemoTool {
  readonly name: string
  readonly description: string
  readonly schema: Record<string, unknown>
}

/** The agents' working folder. */
export const FOLDER = '/home/ada/project'

function tool(
  name: string,
  description: string,
  required: Record<string, unknown>,
  optional: Record<string, unknown> = {},
): DemoTool {
  const properties = { ...required, ...optional }
  const schema = { type: 'object', properties, required: Object.keys(required), additionalProperties: false }
  return { name, description, schema }
}

function text(description: string): Record<string, unknown> {
  return { type: 'string', description }
}

const LINES = {
  offset: { type: 'integer', minimum: 0, maximum: 9007199254740991 },
  limit: { type: 'integer', exclusiveMinimum: 0, maximum: 9007199254740991 },
}
const ABSOLUTE = text('The absolute path to the file')
const COMMAND = { command: text('The command to execute') }
const EXCHANGE = { old_string: text('The text to replace'), new_string: text('The text to replace it with') }

const CLAUDE_CODE: DemoAgent = {
  name: 'Claude Code',
  dialect: 'messages',
  system:
    'You are an agent working with the user. Prefer the dedicated file/search tools over shell commands.',
  userParts: (prompt) => [
    '<system-reminder>\nEnd git commit messages with "Co-Authored-By: Agent". Read CLAUDE.md first.\n</system-reminder>\n',
    prompt,
  ],
  aside: `# Environment\nYou have been invoked in the following environment: \n - Primary working directory: ${FOLDER}\n - Is a git repository: false\n`,
  tools: [
    tool('Agent', 'Launch a new agent to handle complex, multi-step tasks.', {
      description: text('A short description of the task'),
      prompt: text('The task'),
    }),
    tool('Bash', 'Executes a bash command and returns its output.', COMMAND, {
      timeout: { type: 'number' },
      dangerouslyDisableSandbox: { type: 'boolean' },
    }),
    tool('Edit', 'Performs exact string replacement in a file.', { file_path: ABSOLUTE, ...EXCHANGE }),
    tool(
      'Read',
      'Reads a file from the local filesystem.\n\n- `file_path` must be an absolute path.',
      { file_path: ABSOLUTE },
      LINES,
    ),
    tool('Skill', 'Invoke a skill.', { skill: text('The name of a skill') }),
    tool('ToolSearch', 'Fetches full schema definitions for deferred tools so they can be called.', {
      query: text('Query to find deferred tools'),
      max_results: { type: 'number', default: 5 },
    }),
    tool('Write', 'Writes a file to the local filesystem.', {
      file_path: ABSOLUTE,
      content: text('The content'),
    }),
  ],
  shown: (_, content) =>
    content
      .split('\n')
      .map((line, at) => `${at + 1}\t${line}`)
      .join('\n'),
}

const QWEN_CODE: DemoAgent = {
  name: 'qwen-code',
  dialect: 'chat',
  system: 'You are a non-interactive CLI agent. Always use absolute paths.',
  userParts: (prompt) => [
    '<system-reminder>\nThe following skills are available: batch - run operations on multiple files.\n</system-reminder>',
    `<system-reminder>\nMy operating system is: linux\nI'm currently working in the directory: ${FOLDER}\nHere is the folder structure:\n</system-reminder>`,
    prompt,
  ],
  tools: [
    tool('agent', 'Launch a new agent to handle complex tasks autonomously. It reads, searches and writes.', {
      prompt: text('The task'),
      agent_type: text('The named agent type'),
    }),
    tool('edit', 'Replaces text within a file.', { file_path: ABSOLUTE, ...EXCHANGE }),
    tool('get_goal', 'Reads the goal of the session.', {}),
    tool('glob', 'Fast file pattern matching tool', { pattern: text('The glob pattern') }),
    tool('notebook_edit', 'Edits a notebook.', { notebook_path: ABSOLUTE, new_source: text('The source') }),
    tool('read_file', 'Reads and returns the content of a file.', { file_path: ABSOLUTE }, LINES),
    tool('run_shell_command', 'Executes a shell command.', {
      ...COMMAND,
      is_background: { type: 'boolean' },
    }),
    tool('write_file', 'Writes content to a file.', { file_path: ABSOLUTE, content: text('The content') }),
  ],
  shown: (_, content) => content,
}

const OPENCODE: DemoAgent = {
  name: 'opencode',
  dialect: 'chat',
  system: `You are an interactive CLI tool.\n<env>\n  Working directory: ${FOLDER}\n  Workspace root folder: /\n</env>`,
  userParts: (prompt) => [`"${prompt}"`],
  tools: [
    tool('bash', 'Executes a given bash command.', COMMAND, {
      timeout: {
        type: 'integer',
        minimum: -9007199254740991,
        exclusiveMinimum: 0,
        maximum: 9007199254740991,
      },
    }),
    tool('read', 'Read a file or directory from the local filesystem.', { filePath: ABSOLUTE }, LINES),
    tool('task', 'Launch a new agent to handle complex, multistep tasks.', {
      description: text('A short description'),
      prompt: text('The task'),
      agent_type: text('The type of specialized agent'),
    }),
    tool('todowrite', 'Create and maintain a structured task list.', {
      todos: {
        type: 'array',
        items: { type: 'object', properties: { content: text('Task') }, required: ['content'] },
      },
    }),
    tool('write', 'Writes a file to the local filesystem.', {
      content: text('The content'),
      filePath: ABSOLUTE,
    }),
  ],
  shown: (path, content) => {
    const lines = content.trimEnd().split('\n')
    const numbered = lines.map((line, at) => `${at + 1}: ${line}`).join('\n')
    return `<path>${path}</path>\n<type>file</type>\n<content>\n${numbered}\n\n(End of file - total ${lines.length} lines)\n</content>`
  },
}

const PI: DemoAgent = {
  name: 'pi',
  dialect: 'chat',
  system: `You are an expert coding assistant.\n\nAvailable tools:\n- read: Read file contents\n- bash: Execute bash commands\n\nCurrent working directory: ${FOLDER}`,
  userParts: (prompt) => [prompt],
  tools: [
    tool(
      'read',
      'Read the contents of a file.',
      { path: text('Path to the file to read (relative or absolute)') },
      {
        offset: { type: 'number' },
        limit: { type: 'number' },
      },
    ),
    tool('bash', 'Execute a bash command in the current working directory.', COMMAND),
    tool('edit', 'Edit a single file using exact text replacement.', {
      path: text('Path to the file'),
      edits: { type: 'array', items: { type: 'object' } },
    }),
    tool('write', 'Write content to a file.', {
      path: text('Path to the file'),
      content: text('The content'),
    }),
  ],
  shown: (_, content) => content,
}

/** Agents whose requests are imitated, so that the agents need not be installed. */
export const DEMO_AGENTS: readonly DemoAgent[] = [CLAUDE_CODE, QWEN_CODE, OPENCODE, PI]
