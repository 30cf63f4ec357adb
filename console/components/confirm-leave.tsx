import { Button, Group, Modal } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import { useTexts } from '../locales/use-texts.tsx'
import { mayKeepForm } from './session-recovery.ts'

/** Parameters of a page's URL that open a dialog with a form. */
const OF_DIALOGS = ['new', 'invite', 'group', 'edit', 'server', 'toolset']

/**
 * Asks for confirmation before the user leaves a page with a changed form, or goes back from a dialog with one. When the
 * tab is closed, the browser asks.
 */
export function ConfirmLeave({
  isChanged,
  isInDialog = false,
}: {
  readonly isChanged: boolean
  readonly isInDialog?: boolean
}) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next, action }) => {
      // Buttons of a dialog close it by a change of the URL, too.
      const isHistory = action !== 'PUSH' && action !== 'REPLACE'
      // Changes of other parameters keep the form.
      const names = isInDialog && isHistory ? ['tab', ...OF_DIALOGS] : ['tab']
      return (
        isChanged &&
        (current.pathname !== next.pathname ||
          names.some((name) => parameterOf(current.search, name) !== parameterOf(next.search, name)))
      )
    },
    enableBeforeUnload: () => isChanged && mayKeepForm(),
    withResolver: true,
  })
  return (
    <LeaveQuestion
      opened={blocker.status === 'blocked'}
      onStay={() => blocker.reset?.()}
      onLeave={() => blocker.proceed?.()}
    />
  )
}

/** Asks whether to leave a changed form. */
export function LeaveQuestion({
  opened,
  onStay,
  onLeave,
}: {
  readonly opened: boolean
  readonly onStay: () => void
  readonly onLeave: () => void
}) {
  const { leave, common } = useTexts()
  return (
    <Modal
      opened={opened}
      onClose={onStay}
      title={leave.title}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <p>{common.leaveForm}</p>
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button variant="default" data-autofocus onClick={onStay}>
          {leave.stay}
        </Button>
        <Button color="red" onClick={onLeave}>
          {leave.leave}
        </Button>
      </Group>
    </Modal>
  )
}

function parameterOf(search: object, name: string): unknown {
  return (search as Readonly<Record<string, unknown>>)[name]
}
