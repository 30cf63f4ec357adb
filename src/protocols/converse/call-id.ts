import { hash } from 'node:crypto'

const MAX_LENGTH = 64
const SHORT_LENGTH = 9

/**
 * The id of a call as the upstream takes it; a call and its result stay equal. Ids of other providers may be
 * too long or have other characters, and some models know only short ones.
 */
export function wireId(id: string, isShort: boolean): string {
  if (isShort) return /^[A-Za-z\d]{9}$/.test(id) ? id : digestOf(id).slice(0, SHORT_LENGTH)
  const plain = id.replaceAll(/[^\w-]/g, '_') || '_'
  return plain.length <= MAX_LENGTH ? plain : digestOf(id)
}

function digestOf(id: string): string {
  return hash('sha256', id).slice(0, MAX_LENGTH)
}
