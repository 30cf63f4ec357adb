/** Maximum length of a value that is not checked because it looks like a word of a protocol. */
export const MAX_TERM = 64
const MEMBER_NAME = /^[\w.$:/*+-]*$/
const TERM = /^[\w.:/*+-]*(?:; ?[\w-]+=[\w.+-]+)*$/

/** Whether a value looks like a word of a protocol: an identifier, a size, a media type. */
export function isTerm(value: string): boolean {
  return value.length <= MAX_TERM && TERM.test(value)
}

/** Whether a member of an object has a name as APIs define them; any other was chosen by a user. */
export function isMemberName(name: string): boolean {
  return name.length <= MAX_TERM && MEMBER_NAME.test(name)
}

/** Values that only their makers can read are words in base64, joined by dots, behind the name of a scheme. */
const SCHEME_OF_SEALED = /^(?:bearer|basic|token) {1,16}/i
const NO_SEALED = /^\.|[^\w+/=~.-]/
/** Whether a value may be a signature, or another value that only its maker can read. */
export function isSealed(value: string): boolean {
  const words = value.replace(SCHEME_OF_SEALED, '')
  return words !== '' && !NO_SEALED.test(words)
}
