/** A text with its variables substituted, or the errors. */
export type Substituted = { readonly text: string } | { readonly errors: readonly string[] }

const REFERENCE = /\$\$\{|\$\{([^}]*)\}?/g
const NAME = /^[A-Za-z_]\w*$/

/** Substitutes `${NAME}`; `$${` is a literal `${`. The value of a variable is not substituted again. */
export function substitute(text: string, lookup: (name: string) => string | undefined): Substituted {
  if (!text.includes('${')) return { text }
  const errors: string[] = []
  const result = text.replaceAll(REFERENCE, (found: string, name: string | undefined) => {
    if (found === '$${') return '${'
    if (name === undefined || !NAME.test(name) || !found.endsWith('}')) {
      errors.push('expected ${NAME} with the name of a variable; a literal ${ is written $${')
      return found
    }
    const value = lookup(name)
    if (value === undefined) errors.push(`expected the environment variable ${name} to be set`)
    return value ?? found
  })
  return errors.length > 0 ? { errors } : { text: result }
}
