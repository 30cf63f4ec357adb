import { useTexts } from '../locales/use-texts.tsx'
import classes from './conversation.module.css'
import type { ConversationPiece, ConversationTurn } from './conversation-pieces.ts'

/** A conversation, turn by turn. Thinking, tool calls and their results are collapsed. */
export function Conversation({
  turns,
  label,
}: {
  readonly turns: readonly ConversationTurn[]
  readonly label: string
}) {
  const { content } = useTexts()
  const roles: Readonly<Record<string, string>> = content.roles
  return (
    <ol className={classes['turns']} aria-label={label}>
      {turns.map(({ role, pieces }, index) => (
        <li key={index}>
          <p className={classes['role']}>{roles[role] ?? role}</p>
          {pieces.map((piece, at) => (
            <PieceOfTurn key={at} piece={piece} />
          ))}
        </li>
      ))}
    </ol>
  )
}

function PieceOfTurn({ piece: { kind, name, text } }: { readonly piece: ConversationPiece }) {
  const { content } = useTexts()
  if (kind === 'text') return <p className={classes['piece']}>{text}</p>
  if (kind === 'file') return <p className={classes['aside']}>{content.file(name, text)}</p>
  const title = {
    thinking: content.thinking,
    call: content.called(name),
    result: content.result,
    other: name,
  }
  return (
    <details className={classes['aside']} open={kind === 'other'}>
      <summary>{title[kind]}</summary>
      <p className={classes['piece']}>{text}</p>
    </details>
  )
}
