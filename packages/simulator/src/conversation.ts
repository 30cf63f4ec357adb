/** One step of a conversation, in any protocol. */
export type ConversationStep =
  | { readonly kind: 'system'; readonly text: string }
  /** `hasMedia`: the message contains something other than text. */
  | { readonly kind: 'user'; readonly text: string; readonly hasMedia: boolean }
  /** A turn of the model; `calls` is the number of its tool calls. */
  | { readonly kind: 'model'; readonly calls: number }
  | { readonly kind: 'result'; readonly text: string }

/** State of a conversation at which the model continues. */
export interface ConversationState {
  /** System prompt, and other texts of that role. */
  readonly instructions: string
  /** Texts of the user, one per message, without the blocks that agents add. */
  readonly userTexts: readonly string[]
  /** Last text of the user; empty if there is none. */
  readonly lastUser: string
  /** Results of the tools called since the last text of the user, in order. */
  readonly results: readonly string[]
  /** Number of tools called since the last text of the user. */
  readonly callsMade: number
  /** Absolute path of the client's working directory; undefined if the prompt does not state it. */
  readonly workingDirectory: string | undefined
}

/**
 * Summarizes a conversation. A user message does not count if an agent wrote all of it. It does not count
 * either if it follows the user's message and states the working directory: a converted system message has
 * this form.
 */
export function conversationState(steps: readonly ConversationStep[]): ConversationState {
  const instructions: string[] = []
  const surroundings: string[] = []
  const userTexts: string[] = []
  let results: string[] = []
  let callsMade = 0
  for (const [at, step] of steps.entries()) {
    if (step.kind === 'system' || step.kind === 'user') surroundings.push(step.text)
    if (step.kind === 'system') instructions.push(step.text)
    else if (step.kind === 'result') results.push(step.text)
    else if (step.kind === 'model') callsMade += step.calls
    else {
      const text = withoutReminders(step.text).trim()
      if (text === '' && (!step.hasMedia || results.length > 0)) continue
      if (steps[at - 1]?.kind === 'user' && workingDirectory(text) !== undefined) continue
      userTexts.push(text)
      results = []
      callsMade = 0
    }
  }
  return {
    instructions: instructions.join('\n'),
    userTexts,
    lastUser: userTexts.at(-1) ?? '',
    results,
    callsMade,
    workingDirectory: workingDirectory(surroundings.join('\n')),
  }
}

/** Tags of the blocks that agents add to messages of the user. */
const REMINDERS = [
  'system-reminder',
  'environment_context',
  'environment_details',
  'session_context',
  'hook_context',
]

/** Removes from a user's message the blocks that agents have added to it. */
export function withoutReminders(text: string): string {
  return REMINDERS.reduce(withoutBlocks, text)
}

function withoutBlocks(text: string, tag: string): string {
  const [open, close] = [`<${tag}>`, `</${tag}>`]
  let remaining = ''
  let at = 0
  while (true) {
    const from = text.indexOf(open, at)
    const to = from < 0 ? -1 : text.indexOf(close, from)
    if (to < 0) return remaining + text.slice(at)
    remaining += text.slice(at, from)
    at = to + close.length
  }
}

const NAMES = '(?:working directory|current directory|working in the directory|cwd)'
const PATH = '(?:/|[A-Za-z]:\\\\)'
/** Matches the working directory after a field name: everything up to the end of the line. */
const FIELD = new RegExp(`\\b${NAMES}["'\`]?(?::|=|>) ?["'\`]?(${PATH}[^\\n"'\`<>]{0,400})`, 'i')
/** Matches the working directory within a sentence: a path without spaces. */
const SENTENCE = new RegExp(`\\b${NAMES} is ["'\`]?(${PATH}[^\\s"'\`<>]{0,400})`, 'i')

/** Matches the first path in a list of workspace directories. */
const LIST = new RegExp(`\\bworkspace directories:[*]{0,2}\\s{0,8}- (${PATH}[^\\n]{0,400})`, 'i')

/** Finds the working directory in the forms in which agents state it. */
function workingDirectory(text: string): string | undefined {
  const path =
    FIELD.exec(text)?.[1]?.trim() ??
    SENTENCE.exec(text)?.[1]?.replace(/[.,;:]$/, '') ??
    LIST.exec(text)?.[1]?.trim()
  return path === undefined || path.length === 1 ? path : path.replace(/[/\\]$/, '')
}
