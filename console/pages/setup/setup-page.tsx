import { Button } from '@mantine/core'
import { IconCheck } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { refreshingAppShellQuery } from '../../api/account.ts'
import { callsQuery } from '../../api/calls.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { setPreferences } from '../../components/preferences.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './setup-page.module.css'
import { type SetupState, setupSteps } from './setup-steps.ts'

/**
 * Milliseconds between two requests for the state, because another program may complete a step while the page
 * is open.
 */
const REFRESH_MS = 5000

/** The steps from an empty gateway to the cost of a first call. */
export function SetupPage() {
  const { imports, setup } = useTexts()
  const { profile } = useSignedInAccount()
  const navigate = useNavigate()
  const query = useQuery(refreshingAppShellQuery(REFRESH_MS, 0))
  const state = query.data?.setup
  const hasCall = state?.has_call ?? false
  const { data: newest } = useQuery({
    ...callsQuery(profile.id, 'all', {}, 1, { pageSize: 1 }),
    enabled: hasCall,
  })
  const isDone = hasCall && state?.has_channel === true
  return (
    <div className={classes['page']}>
      <PageHead title={setup.title}>
        <Button
          variant={isDone ? 'filled' : 'default'}
          onClick={() => {
            setPreferences({ isSetUp: true })
            void navigate({ to: '/' })
          }}
        >
          {isDone ? setup.toOverview : setup.skip}
        </Button>
      </PageHead>
      <p className={classes['hint']}>{setup.hint}</p>
      <p className={classes['hint']}>
        <Link to="/import">{imports.link}</Link>
      </p>
      <QueryResult query={query} rows={4}>
        {({ setup: state }) => <Steps state={{ ...state, newestCall: newest?.items[0]?.id }} />}
      </QueryResult>
    </div>
  )
}

function Steps({ state }: { readonly state: SetupState }) {
  const { setup } = useTexts()
  const navigate = useNavigate()
  const steps = setupSteps(state)
  const current = steps.find(({ isDone }) => !isDone)
  return (
    <ol aria-label={setup.steps} className={classes['steps']}>
      {steps.map(({ name, isDone, path }, place) => (
        <li
          key={name}
          aria-current={name === current?.name ? 'step' : undefined}
          data-done={isDone || undefined}
        >
          <span className={classes['mark']} aria-hidden>
            {isDone ? <IconCheck size={14} /> : place + 1}
          </span>
          <div>
            <h2>
              {setup.names[name]}
              {isDone && <small>{setup.done}</small>}
            </h2>
            <p>{setup.texts[name]}</p>
            {(name === current?.name || (name === 'cost' && isDone)) && (
              <Button
                variant={name === current?.name ? 'filled' : 'default'}
                onClick={() => void navigate({ href: path })}
              >
                {setup.actions[name]}
              </Button>
            )}
          </div>
        </li>
      ))}
    </ol>
  )
}
