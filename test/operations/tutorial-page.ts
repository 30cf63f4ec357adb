/** A fenced block of a tutorial that is run or checked. `docs/tutorials/README.md: How they are tested`. */
export type TutorialBlock =
  | { readonly kind: 'file'; readonly name: string; readonly text: string }
  | { readonly kind: 'run'; readonly needs: string | undefined; readonly text: string }
  | { readonly kind: 'background'; readonly ready: string; readonly text: string }
  | { readonly kind: 'output'; readonly text: string }

/** Languages of blocks with commands. */
const SHELLS: ReadonlySet<string> = new Set(['sh', 'bash', 'shell', 'console'])
/** Words for what a block needs and tests do not have. */
const NEEDS: ReadonlySet<string> = new Set(['provider', 'docker', 'servers', 'clone', 'root', 'terminal'])

/**
 * Reads the blocks of a page that are run or checked, in order. Throws if commands are neither run nor marked
 * with what they need.
 */
export function tutorialBlocks(page: string): TutorialBlock[] {
  return [...page.matchAll(/^( *)```(\w+)(?: (.+))?\n([\s\S]*?)^\1```$/gm)].flatMap(
    ([, indent = '', language = '', words, body = '']): TutorialBlock[] => {
      if (words === undefined && !SHELLS.has(language)) return []
      if (words === undefined) throw new Error(`commands without a word that says how they are run: ${body}`)
      if (NEEDS.has(words)) return []
      const text = body.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
      const [kind = '', ...rest] = words.split(' ')
      const options = new Map<string, string>()
      for (const word of rest) {
        const [name = '', ...value] = word.split('=')
        options.set(name, value.join('='))
      }
      const [ready, needs] = [options.get('ready'), options.get('if')]
      if (kind.startsWith('file=')) return [{ kind: 'file', name: kind.slice('file='.length), text }]
      if (kind === 'background' && ready !== undefined) return [{ kind, ready, text }]
      if (kind === 'run') return [{ kind, needs, text }]
      if (kind === 'output') return [{ kind, text }]
      throw new Error(`the words "${words}" after a block's language are unknown`)
    },
  )
}

/** The lines of an expected output that are not part of any line of the actual output. */
export function missingLines(expected: string, actual: string): string[] {
  return expected.split('\n').filter((line) => {
    if (line === '') return false
    const parts = line.split('…').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'))
    return !new RegExp(parts.join('.*')).test(actual)
  })
}
