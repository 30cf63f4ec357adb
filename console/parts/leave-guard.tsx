import { Button, Group, Modal } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import { useTexts } from '../texts/use-texts.tsx'

/** Asks before a page is left whose form is changed. Closing the tab asks in the browser's words. */
export function LeaveGuard({ isChanged }: { readonly isChanged: boolean }) {
  const { leave, common } = useTexts()
  const blocker = useBlocker({
    // Filters and open tabs are in the address, too: the form stays with them.
    shouldBlockFn: ({ current, next }) => isChanged && current.pathname !== next.pathname,
    enableBeforeUnload: isChanged,
    withResolver: true,
  })
  const isAsking = blocker.status === 'blocked'
  return (
    <Modal
      opened={isAsking}
      onClose={() => blocker.reset?.()}
      title={leave.title}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <p>{common.leaveForm}</p>
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button variant="default" data-autofocus onClick={() => blocker.reset?.()}>
          {leave.stay}
        </Button>
        <Button color="red" onClick={() => blocker.proceed?.()}>
          {leave.leave}
        </Button>
      </Group>
    </Modal>
  )
}
