import { Button, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { gatewayAddress } from '../../api/base-path.ts'
import { callsQuery } from '../../api/calls.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { SnippetTabs } from '../../components/snippet-tabs.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './overview-page.module.css'

/** The number of calls that the page lists. */
export const RECENT_CALLS = 5
/** Milliseconds between two checks for the first call. */
const LOOK_MS = 1500

/** How to connect a program: the gateway's URL, examples, and whether the first call has arrived. */
export function ConnectSection() {
  const { overview } = useTexts()
  const address = `${gatewayAddress()}/v1`
  return (
    <section aria-label={overview.connect}>
      <h2 className={classes['heading']}>{overview.connect}</h2>
      <div className={classes['address']}>
        <TextInput label={overview.baseUrl} readOnly value={address} />
        <CopyButton label={overview.copyBaseUrl} text={address} />
        <Button component={Link} to="/keys" search={{ new: '1' } as never}>
          {overview.createKey}
        </Button>
      </div>
      <SnippetTabs limitedTo={[]} insertedKey={undefined} />
      <FirstCall />
    </section>
  )
}

/** Waits for the first call: at once if the account has no calls yet, otherwise after a click. */
function FirstCall() {
  const { overview } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const [waitingSince, setWaitingSince] = useState<string>()
  const [hasArrived, setHasArrived] = useState(false)
  // The same query as the list of recent calls on this page, so that there is no additional request.
  const newest = callsQuery(profile.id, 'own', {}, 1, { pageSize: RECENT_CALLS })
  const isWaiting = waitingSince !== undefined && !hasArrived
  const { data } = useQuery({ ...newest, refetchInterval: isWaiting ? LOOK_MS : false })
  const id = data?.items[0]?.id ?? ''
  useEffect(() => {
    if (data && id === '' && waitingSince === undefined) setWaitingSince('')
    if (waitingSince === undefined || id === '' || id === waitingSince || hasArrived) return
    setHasArrived(true)
    void client.invalidateQueries({ queryKey: [profile.id, 'calls'] })
    void client.invalidateQueries({ queryKey: [profile.id, 'usage'] })
  }, [client, data, id, waitingSince, hasArrived, profile.id])
  return (
    <div className={classes['first']}>
      <Button
        variant="default"
        onClick={() => {
          setHasArrived(false)
          setWaitingSince(id)
        }}
      >
        {overview.tryIt}
      </Button>
      <span role="status" aria-label={overview.firstCall}>
        {hasArrived && <StateMark tone="ok" word={overview.arrived} />}
        {isWaiting && overview.waiting}
      </span>
    </div>
  )
}
