import type { ConversationPart, ConversationTurn } from '../api/content.ts'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './conversation.module.css'
import { laidOut } from './conversation-turns.ts'
import { isPicture, Markdown } from './markdown.tsx'

/** A conversation, turn by turn. Thinking, tool calls and their results are collapsed. */
export function Conversation({
  turns,
  label,
}: {
  readonly turns: readonly ConversationTurn[]
  readonly label: string
}) {
  const { content } = useTexts()
  return (
    <ol className={classes['turns']} aria-label={label}>
      {turns.map(({ role, parts }, index) => (
        <li key={index}>
          <p className={classes['role']}>{content.roles[role]}</p>
          {parts.map((part, at) => (
            <PartOfTurn key={at} part={part} isMarkdown={role === 'user' || role === 'assistant'} />
          ))}
        </li>
      ))}
    </ol>
  )
}

function PartOfTurn({
  part,
  isMarkdown = false,
}: {
  readonly part: ConversationPart
  /** Whether texts are Markdown. Instructions and results of tools are shown as they were written. */
  readonly isMarkdown?: boolean
}) {
  const { content } = useTexts()
  switch (part.kind) {
    case 'text':
      return isMarkdown ? <Markdown text={part.text} /> : <p className={classes['piece']}>{part.text}</p>
    case 'media':
      return part.url !== undefined && isPicture(part.url) ? (
        <img src={part.url} alt={content.file(part.type, '')} className={classes['picture']} />
      ) : (
        <p className={classes['aside']}>{content.file(part.type, part.url ?? '')}</p>
      )
    case 'thinking':
      return <Folded title={content.thinking} text={part.text} />
    case 'tool-call':
      return <Folded title={content.called(part.name)} text={laidOut(part.input)} />
    case 'tool-result':
      return (
        <details className={classes['aside']}>
          <summary>{content.result}</summary>
          {part.parts.map((one, at) => (
            <PartOfTurn key={at} part={one} />
          ))}
        </details>
      )
    case 'search':
      return (
        <Folded title={content.searched(part.query)} text={part.pages.map(({ url }) => url).join('\n')} />
      )
    case 'opaque':
      return <Folded title={content.asWritten} text={laidOut(part.json)} isOpen />
  }
}

function Folded({
  title,
  text,
  isOpen = false,
}: {
  readonly title: string
  readonly text: string
  readonly isOpen?: boolean
}) {
  return (
    <details className={classes['aside']} open={isOpen}>
      <summary>{title}</summary>
      <p className={classes['piece']}>{text}</p>
    </details>
  )
}
