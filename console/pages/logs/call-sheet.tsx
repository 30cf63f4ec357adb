import { ActionIcon, Button, Drawer } from '@mantine/core'
import { IconChevronDown, IconChevronUp } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { loggedCallQuery, type CallScope } from '../../api/calls.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { CallDetails } from './call-details.tsx'
import classes from './call-sheet.module.css'
import { RefusedCallDetails } from './refused-call-details.tsx'
import { useNeighbouringCalls } from './use-neighbouring-calls.ts'

/** The details of one call, in a panel beside the list; the panel has its own URL. */
export function CallSheet({
  id,
  scope,
  ids,
}: {
  readonly id: string | undefined
  readonly scope: CallScope
  /** The ids of the calls in the list, in its order. */
  readonly ids: readonly string[]
}) {
  const { call, common } = useTexts()
  const navigate = useNavigate()
  const { previous, next } = useNeighbouringCalls(id, ids)
  const last = useRef(id)
  useEffect(() => {
    if (id !== undefined) last.current = id
  }, [id])
  const close = (): void =>
    void navigate({ to: '/logs', search: (before: object) => before, resetScroll: false })
  return (
    <Drawer
      opened={id !== undefined}
      onClose={close}
      // When the panel closes, the focus goes to the row of the call shown last, not to the row that was
      // opened first.
      returnFocus={false}
      onExitTransitionEnd={() => focusRowOf(last.current)}
      position="right"
      size="440px"
      title={call.dialog}
      classNames={{ content: classes['sheet'] }}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      {ids.length > 0 && (
        <div className={classes['neighbours']}>
          {[
            { label: call.previous, open: previous, Icon: IconChevronUp },
            { label: call.next, open: next, Icon: IconChevronDown },
          ].map(({ label, open, Icon }) => (
            <ActionIcon
              key={label}
              variant="default"
              aria-label={label}
              title={label}
              disabled={!open}
              onClick={open}
            >
              <Icon size={16} aria-hidden />
            </ActionIcon>
          ))}
        </div>
      )}
      {id !== undefined && <OpenCall id={id} scope={scope} />}
    </Drawer>
  )
}

/** Leaves the focus where it is if the user has moved it out of the panel meanwhile. */
function focusRowOf(id: string | undefined): void {
  const { activeElement: focused } = document
  if (id === undefined || (focused !== document.body && focused?.closest('[role="dialog"]') === null)) return
  const row = document.querySelector<HTMLElement>(`[data-row-link="${CSS.escape(id)}"]`)
  // The call may be on another page of the list, if the panel was opened by a link.
  ;(row ?? document.querySelector<HTMLElement>('main'))?.focus()
}

function OpenCall({ id, scope }: { readonly id: string; readonly scope: CallScope }) {
  const { call } = useTexts()
  const { profile } = useSignedInAccount()
  return (
    <QueryResult query={useQuery(loggedCallQuery(profile.id, scope, id))}>
      {(found) =>
        !found ? (
          <EmptyState text={call.gone}>
            <Button component={Link} to="/logs" variant="default">
              {call.allCalls}
            </Button>
          </EmptyState>
        ) : found.type === 5 ? (
          <RefusedCallDetails call={found} />
        ) : (
          <CallDetails call={found} />
        )
      }
    </QueryResult>
  )
}
