/** A text with its variables put in, or what is wrong with it. */
export type Substituted = { readonly text: string } | { readonly errors: readonly string[] }

const REFERENCE = /\$\$\{|\$\{([^}]*)\}?/g
const NAME = /^[A-Za-z_]\w*$/

/**
 * Puts variables in the place of `${NAME}`; `$${` is a literal `${`. What comes from a variable is not read
 * again.
 */
export function substitute(text: string, lookup: (name: string) => string | undefined): Substituted {
  const mistakes: string[] = []
  const result = text.replaceAll(REFERENCE, (found: string, name: string | undefined) => {
    if (found === '$${') return '${'
    if (name === undefined || !NAME.test(name) || !found.endsWith('}')) {
      mistakes.push('expected ${NAME} with the name of a variable; a literal ${ is written $${')
      return found
    }
    const value = lookup(name)
    if (value === undefined) mistakes.push(`expected the environment variable ${name} to be set`)
    return value ?? found
  })
  return mistakes.length > 0 ? { errors: mistakes } : { text: result }
}
