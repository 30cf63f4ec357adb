const MOST_WORDS = 6
const LONGEST = 50
/** Tags in which clients put the conversation that a title is for. */
const CONVERSATION = /<(?:chat_history|conversation|session)>([^]*)<\/(?:chat_history|conversation|session)>/i

/** A title for what a message is about: its first words, without quotes and full stop. */
export function titleOf(message: string): string {
  const text = CONVERSATION.exec(message.slice(0, 20_000))?.[1] ?? message.slice(0, 20_000)
  const line = text.split('\n').find((one) => /\p{L}/u.test(one)) ?? ''
  const words = line
    .trim()
    .replace(/^(?:user|human): ?/i, '')
    .replaceAll(/["“”`<>]/g, '')
    .split(/\s+/)
    .slice(0, MOST_WORDS)
    .join(' ')
    .slice(0, LONGEST)
    .replace(/[.,;:!?]{1,3}$/, '')
    .replace(/ (?:and|or|the|a|of|to|in|for|with|tell|me)$/i, '')
  return words === '' ? 'New conversation' : words.charAt(0).toUpperCase() + words.slice(1)
}
