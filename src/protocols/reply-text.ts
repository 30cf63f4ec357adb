import type { Reply } from './reply.ts'

/** The generated text of a reply, for counting. */
export function replyText({ parts }: Reply): string {
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
