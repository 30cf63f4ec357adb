import { described, type DescribedInput } from '../../described-input.ts'

const text = { type: 'string' }
const integer = { type: 'integer' }

/** The input of a tool that edits files by these commands. */
function edits(commands: readonly string[], others: object): object {
  return {
    command: { ...text, enum: commands },
    path: { ...text, description: 'The file, or the directory to view.' },
    file_text: { ...text, description: 'For create: the content of the file.' },
    old_str: { ...text, description: 'For str_replace: a text that is in the file exactly once.' },
    new_str: { ...text, description: 'The text that replaces it.' },
    insert_line: { ...integer, description: 'For insert: the line after which, 0 for the beginning.' },
    view_range: {
      type: 'array',
      items: integer,
      description: 'For view: first and last line; -1 for the end.',
    },
    ...others,
  }
}

const COMMANDS = ['view', 'create', 'str_replace', 'insert']
const EDITOR = 'Views, creates and edits text files by commands.'
const insert_text = { ...text, description: 'For insert: the text.' }

/**
 * Tools that Anthropic defines and the client runs, whose inputs Claude knows without a schema, by their type:
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/text-editor-tool and its neighbours.
 */
const CLIENT_TOOLS: readonly (readonly [type: RegExp, input: DescribedInput])[] = [
  [
    /^bash_\d+$/,
    described(
      'Runs a command in a bash session that stays open, and returns its output.',
      {
        command: text,
        restart: { type: 'boolean', description: 'Starts the session again, in place of a command.' },
      },
      [],
    ),
  ],
  // The first versions insert `new_str`, and can undo.
  [
    /^text_editor_(?:20241022|20250124)$/,
    described(
      EDITOR,
      edits([...COMMANDS, 'undo_edit'], {
        new_str: { ...text, description: 'The text that replaces it, or that is inserted.' },
      }),
      ['command', 'path'],
    ),
  ],
  [/^text_editor_\d+$/, described(EDITOR, edits(COMMANDS, { insert_text }), ['command', 'path'])],
  [
    /^memory_\d+$/,
    described(
      'Keeps files in the directory /memories between conversations. View it before anything else.',
      edits([...COMMANDS, 'delete', 'rename'], {
        insert_text,
        old_path: { ...text, description: 'For rename, in place of path.' },
        new_path: text,
      }),
      ['command'],
    ),
  ],
]

/** What a tool of such a type becomes for models that do not know it; undefined for all other types. */
export function clientToolAsFunction(type: unknown): DescribedInput | undefined {
  return CLIENT_TOOLS.find(([pattern]) => typeof type === 'string' && pattern.test(type))?.[1]
}
