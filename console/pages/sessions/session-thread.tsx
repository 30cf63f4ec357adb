import { useQueries } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Call } from '../../api/calls.ts'
import { contentQuery, type ConversationTurn } from '../../api/content.ts'
import { Conversation } from '../../components/conversation.tsx'
import { turnsSincePreviousCall } from '../../components/conversation-turns.ts'
import { turnsWithPictures } from '../../components/pictures-of-content.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './sessions.module.css'

/** The calls of a session as one conversation: each call shows only the messages that are new in it. */
export function SessionThread({ calls }: { readonly calls: readonly Call[] }) {
  const { content } = useTexts()
  const { profile } = useSignedInAccount()
  const kept = calls.filter(({ content_address: address }) => address !== '')
  const found = useQueries({ queries: kept.map(({ id }) => contentQuery(profile.id, id)) })
  if (kept.length === 0) return <p className={classes['hint']}>{content.nothingKept}</p>
  let before: readonly ConversationTurn[] = []
  return kept.map((call, index) => {
    const said = found[index]?.data
    const turns = said ? turnsWithPictures(said) : []
    const shown = turnsSincePreviousCall(turns, before)
    if (turns.length > 0) before = turns
    return (
      <section key={call.id} aria-label={call.id}>
        <h3 className={classes['heading']}>
          <Link to="/logs/$id" params={{ id: call.id }}>
            <TimeText at={call.created_at} />
          </Link>{' '}
          {call.model_name}
        </h3>
        {shown.length > 0 ? (
          <Conversation turns={shown} label={content.conversation} />
        ) : (
          <p className={classes['hint']}>{found[index]?.isPending ? content.loading : content.noText}</p>
        )}
      </section>
    )
  })
}
