import type { Choice, Reply } from './reply.ts'

/** The generated text of a reply with all of its choices, for counting tokens. */
export function replyText(reply: Reply): string {
  return [reply, ...(reply.others ?? [])].map(choiceText).join('\n')
}

function choiceText({ parts }: Choice): string {
  return parts
    .map((part) => {
      switch (part.kind) {
        case 'text':
          return part.withoutMedia ?? part.text
        case 'thinking':
          return part.text
        case 'tool-call':
          return `${part.name}\n${part.input}`
        case 'search':
        case 'opaque':
          return ''
      }
    })
    .join('\n')
}
