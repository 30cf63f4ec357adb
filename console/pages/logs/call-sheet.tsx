import { Drawer } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { loggedCallQuery, type Scope } from '../../api/calls.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { Empty } from '../../components/empty.tsx'
import { useSignedIn } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { CallDetails } from './call-details.tsx'
import classes from './call-sheet.module.css'
import { RefusedDetails } from './refused-details.tsx'

/** The details of one call beside the list, with their own address. */
export function CallSheet({ id, scope }: { readonly id: string | undefined; readonly scope: Scope }) {
  const { call, common } = useTexts()
  const navigate = useNavigate()
  const close = (): void =>
    void navigate({ to: '/logs', search: (before: object) => before, resetScroll: false })
  return (
    <Drawer
      opened={id !== undefined}
      onClose={close}
      position="right"
      size="440px"
      title={call.dialog}
      classNames={{ content: classes['sheet'] }}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      {id !== undefined && <OpenCall id={id} scope={scope} />}
    </Drawer>
  )
}

function OpenCall({ id, scope }: { readonly id: string; readonly scope: Scope }) {
  const { call } = useTexts()
  const { profile } = useSignedIn()
  return (
    <QueryResult query={useQuery(loggedCallQuery(profile.id, scope, id))}>
      {(found) =>
        !found ? (
          <Empty text={call.gone} />
        ) : found.type === 5 ? (
          <RefusedDetails call={found} />
        ) : (
          <CallDetails call={found} />
        )
      }
    </QueryResult>
  )
}
