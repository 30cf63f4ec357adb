/** One step of a conversation, whichever protocol it came in. */
export type Step =
  | { readonly kind: 'system'; readonly text: string }
  /** `hasMedia` where more than text was said. */
  | { readonly kind: 'user'; readonly text: string; readonly hasMedia: boolean }
  /** A turn of the model that called so many tools. */
  | { readonly kind: 'model'; readonly calls: number }
  | { readonly kind: 'result'; readonly text: string }

/** Where a conversation stands when the model has to go on. */
export interface ConversationState {
  /** The system prompt and whatever else was said in its role. */
  readonly instructions: string
  /** Texts of the user, one a message, without what agents add to them. */
  readonly userTexts: readonly string[]
  /** The last of the user's texts; empty if there is none. */
  readonly lastUser: string
  /** Results of the tools called since then, in order. */
  readonly results: readonly string[]
  /** How many tools were called since then. */
  readonly callsMade: number
  /** The folder that the caller works in, as an absolute path; undefined where the prompt does not tell. */
  readonly workingDirectory: string | undefined
}

/**
 * Sums up a conversation. A message of the user that holds only an agent's reminders is not one of the
 * user's.
 */
export function conversationState(steps: readonly Step[]): ConversationState {
  const instructions: string[] = []
  const surroundings: string[] = []
  const userTexts: string[] = []
  let results: string[] = []
  let callsMade = 0
  for (const step of steps) {
    if (step.kind === 'system' || step.kind === 'user') surroundings.push(step.text)
    if (step.kind === 'system') instructions.push(step.text)
    else if (step.kind === 'result') results.push(step.text)
    else if (step.kind === 'model') callsMade += step.calls
    else {
      const text = withoutReminders(step.text).trim()
      if (text === '' && (!step.hasMedia || results.length > 0)) continue
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

/** Blocks that agents put into messages of the user. */
const REMINDERS = ['system-reminder', 'environment_context', 'environment_details']

/** The text without the blocks that agents add to it. */
export function withoutReminders(text: string): string {
  return REMINDERS.reduce(withoutBlocks, text)
}

function withoutBlocks(text: string, tag: string): string {
  const [open, close] = [`<${tag}>`, `</${tag}>`]
  let kept = ''
  let at = 0
  while (true) {
    const from = text.indexOf(open, at)
    const to = from < 0 ? -1 : text.indexOf(close, from)
    if (to < 0) return kept + text.slice(at)
    kept += text.slice(at, from)
    at = to + close.length
  }
}

const NAMES = '(?:working directory|current directory|working in the directory|cwd)'
const PATH = '(?:/|[A-Za-z]:\\\\)'
/** As a field: the path is the rest of the line. */
const FIELD = new RegExp(`\\b${NAMES}["'\`]?(?::|=|>) ?["'\`]?(${PATH}[^\\n"'\`<>]{0,400})`, 'i')
/** Within a sentence: the path ends with the word. */
const SENTENCE = new RegExp(`\\b${NAMES} is ["'\`]?(${PATH}[^\\s"'\`<>]{0,400})`, 'i')

/** The folder by the words with which agents state it. */
function workingDirectory(text: string): string | undefined {
  const path = FIELD.exec(text)?.[1]?.trim() ?? SENTENCE.exec(text)?.[1]?.replace(/[.,;:]$/, '')
  return path === undefined || path.length === 1 ? path : path.replace(/[/\\]$/, '')
}
