import { Button } from '@mantine/core'
import { IconCheck } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type SetupState, setupQuery } from '../../api/setup.ts'
import { AnswerOf } from '../../parts/answer-of.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { setPreferences } from '../../parts/preferences.ts'
import { useSignedIn } from '../../parts/session.tsx'
import { useTexts } from '../../texts/use-texts.tsx'
import classes from './setup-page.module.css'
import { setupSteps } from './setup-steps.ts'

/** As long as somebody may look at the page while a program takes a step. */
const REFRESH_MS = 5000

/** The way from an empty gateway to the cost of a first call. */
export function SetupPage() {
  const { setup } = useTexts()
  const { profile } = useSignedIn()
  const navigate = useNavigate()
  const query = useQuery({ ...setupQuery(profile.id), refetchInterval: REFRESH_MS })
  const isDone = query.data?.lastCall !== undefined && query.data.hasChannel
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
      <AnswerOf query={query} rows={4}>
        {(state) => <Steps state={state} />}
      </AnswerOf>
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
