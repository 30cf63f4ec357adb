import { Button } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { endSession, type Session, sessionsQuery, signOut } from '../../api/account.ts'
import { basePath } from '../../api/base-path.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { FormSection } from '../../components/form-section.tsx'
import { showFailure } from '../../components/notify.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { leaveAfterSignOut } from '../../components/session-recovery.ts'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './sessions-section.module.css'

/** The sessions in which the account is signed in; each can be ended. */
export function SessionsSection() {
  const texts = useTexts()
  const { account } = texts
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const query = useQuery(sessionsQuery(profile.id))
  const end = async (id: string): Promise<void> => {
    await endSession(id).catch((error: unknown) => showFailure(error, texts))
    await client.invalidateQueries({ queryKey: [profile.id, 'sessions'] })
  }
  const leaving = useAction(async () => {
    // Sessions may have begun since the page was opened.
    const sessions = await client.fetchQuery({ ...sessionsQuery(profile.id), staleTime: 0 })
    try {
      for (const { id, current } of sessions) if (!current) await endSession(id)
      const elsewhere = await signOut()
      leaveAfterSignOut()
      location.assign(elsewhere ?? `${basePath}/login`)
    } catch (error) {
      await client.invalidateQueries({ queryKey: [profile.id, 'sessions'] })
      throw error
    }
  })
  return (
    <FormSection title={account.sessions}>
      <QueryResult query={query} rows={2}>
        {(sessions) => (
          <>
            <ul className={classes['sessions']}>
              {sessions.map((session) => (
                <SessionRow key={session.id} session={session} onEnd={() => void end(session.id)} />
              ))}
            </ul>
            <Button
              variant="default"
              style={{ alignSelf: 'start' }}
              loading={leaving.isRunning}
              onClick={() => void leaving.run()}
            >
              {account.signOutEverywhere}
            </Button>
            <RefusalMessage error={leaving.error} />
          </>
        )}
      </QueryResult>
    </FormSection>
  )
}

function SessionRow({ session, onEnd }: { readonly session: Session; readonly onEnd: () => void }) {
  const { account } = useTexts()
  const { recent } = useFormatters()
  return (
    <li>
      <div>
        <span title={session.user_agent}>{browserOf(session.user_agent)}</span>
        <span data-muted>{`${session.address} · ${account.lastUsed(recent(session.last_used))}`}</span>
      </div>
      {session.current ? (
        <span data-muted>{account.thisSession}</span>
      ) : (
        <Button variant="default" onClick={onEnd}>
          {account.endSession}
        </Button>
      )}
    </li>
  )
}

/** The names of the browser and the operating system, if the user agent states them. */
function browserOf(userAgent: string): string {
  const browser = /(Firefox|Edg|OPR|Chrome|Safari)\/\d+/.exec(userAgent)?.[0]?.replace('Edg', 'Edge')
  const system = /\(([^;)]+)/.exec(userAgent)?.[1]
  return [browser?.replace('/', ' '), system].filter(Boolean).join(' · ') || userAgent.slice(0, 60) || '–'
}
