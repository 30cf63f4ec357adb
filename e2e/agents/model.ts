import { type Fields, asFields, asList, asString } from '@sluice/simulator/fields'

/** A tool that a model is offered; if it accepts plain text, its schema has the text as `input`. */
export interface OfferedTool {
  readonly name: string
  readonly schema: Fields
}

/** A model's input, independent of the dialect. */
export interface ModelInput {
  /** All texts of the user, without tool results. */
  readonly user: string
  /** The tool results so far. */
  readonly results: readonly string[]
  readonly tools: readonly OfferedTool[]
}

/** The model's next turn. */
export interface Turn {
  readonly thinking: string
  readonly text: string
  /** `input` is JSON text. */
  readonly calls: readonly { readonly name: string; readonly input: string }[]
}

/** The content of a file, with a secret word for the model to find. */
export function secret(word: string): string {
  return `The secret word is ${word}, and nobody else knows it.`
}

const SECRET = /The secret word is ([\w-]+),/g
const PATH = /\/\S+\.txt/g
/** Matches the file that the user wants the words to be written to by a patch. */
const TARGET = /by a patch into (\S+\.txt)/
/** Names that coding agents give to their tool for reading files. */
const READ_TOOL = /^read(?:_?file)?$/i

/**
 * A model with one ability. It reads the files that the user names, all in one turn and with the agent's own
 * tool, writes their secret words into a file by a patch if the user wants that, and then quotes them from
 * the tool results. If it can search for tools, it does so first. Without a tool for reading (as in a request
 * for a title), it answers with a short sentence.
 */
export function nextTurn({ user, results, tools }: ModelInput): Turn {
  const paths = [...new Set(user.match(PATH))]
  const search = toolNamed(tools, 'tool_search')
  const reading = readCalls(tools, paths)
  const searches = search && reading.length > 0 ? 1 : 0
  if (search && searches > results.length) {
    const input = JSON.stringify({ query: 'agents' })
    return { thinking: 'Perhaps there are better tools.', text: '', calls: [{ name: search.name, input }] }
  }
  const words = [...results.join('\n').matchAll(SECRET)].map(([, word = '']) => word)
  const wanted = [...user.matchAll(new RegExp(TARGET, 'g'))].at(-1)?.[1]
  const patching = wanted === undefined ? [] : patchCalls(tools, wanted, words)
  if (results.length >= searches + reading.length + patching.length && results.length > 0) {
    const text =
      words.length > 0 ? words.map((word) => `"${word}"`).join(' and ') : `nothing, but: ${results[0]}`
    return { thinking: 'Now I know what they say.', text: `The files say ${text}.`, calls: [] }
  }
  if (reading.length === 0) return { thinking: '', text: 'Secrets in two files', calls: [] }
  if (results.length >= searches + reading.length)
    return { thinking: 'Their words belong into a file.', text: 'I will write them down.', calls: patching }
  // Files of earlier questions were already read.
  const unread = reading.slice(Math.max(0, results.length - searches))
  const thinking = `The words are in the files, so I have to read ${unread.length} after ${results.length}.`
  return { thinking, text: 'I will read the files.', calls: unread }
}

/** Calls that read the files: one for each file, or one script that reads them all. */
function readCalls(tools: readonly OfferedTool[], paths: readonly string[]): Turn['calls'] {
  const reader = tools.find(({ name }) => READ_TOOL.test(name))
  const shell = toolNamed(tools, 'exec_command')
  const script = toolNamed(tools, 'exec')
  if (paths.length === 0) return []
  if (reader)
    return paths.map((path) => ({
      name: reader.name,
      input: JSON.stringify({ [pathField(reader.schema)]: path }),
    }))
  if (shell) return paths.map((path) => ({ name: shell.name, input: JSON.stringify({ cmd: `cat ${path}` }) }))
  if (!script) return []
  const commands = paths.map((path) => `text(await tools.exec_command({ cmd: "cat ${path}" }))`)
  return [{ name: script.name, input: JSON.stringify({ input: commands.join('\n') }) }]
}

function patchCalls(tools: readonly OfferedTool[], path: string, words: readonly string[]): Turn['calls'] {
  const patch = [
    '*** Begin Patch',
    `*** Add File: ${path}`,
    ...words.map((word) => `+${word}`),
    '*** End Patch',
  ]
  const text = `${patch.join('\n')}\n`
  const patcher = toolNamed(tools, 'apply_patch')
  if (patcher) return [{ name: patcher.name, input: JSON.stringify({ input: text }) }]
  const script = toolNamed(tools, 'exec')
  const input = `text(await tools.apply_patch(${JSON.stringify(text)}))`
  return script ? [{ name: script.name, input: JSON.stringify({ input }) }] : []
}

/** Finds a tool by its name, also with a namespace before it. */
function toolNamed(tools: readonly OfferedTool[], wanted: string): OfferedTool | undefined {
  return tools.find(({ name }) => name === wanted || name.endsWith(`__${wanted}`))
}

function pathField({ required, properties }: Fields): string {
  const names = [...asList(required).map(asString), ...Object.keys(asFields(properties))]
  return names.find((name) => /path/i.test(name)) ?? 'path'
}

/** Splits a text into pieces, as a model streams them. */
export function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,7}/g) ?? []
}

/** Approximate number of tokens of a text. */
export function tokensOf(text: string): number {
  return Math.ceil(text.length / 4)
}
