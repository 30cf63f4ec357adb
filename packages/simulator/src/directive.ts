import type { Fields } from './fields.ts'

const DIRECTIVE = /simulate\(([^()"\\]{0,200})\)/g

/**
 * Reads the members of the last `simulate(tier=flex, write_12h=100)` in the texts of a request; the value of a member
 * without one is empty. See the README.
 */
export function directiveMembers(body: Fields): ReadonlyMap<string, string> {
  const text = JSON.stringify(body)
  const given = text.includes('simulate(') ? [...text.matchAll(DIRECTIVE)].at(-1)?.[1] : undefined
  return new Map(
    (given ?? '').split(',').map((member) => {
      const [name = '', value = ''] = member.split('=').map((one) => one.trim())
      return [name, value]
    }),
  )
}
