import { Button, Group, Modal } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import { useTexts } from '../locales/use-texts.tsx'

/**
 * Asks for confirmation before the user leaves a page with a changed form. When the tab is closed, the
 * browser asks.
 */
export function ConfirmLeave({ isChanged }: { readonly isChanged: boolean }) {
  const { leave, common } = useTexts()
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) =>
      isChanged && (current.pathname !== next.pathname || tabOf(current.search) !== tabOf(next.search)),
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

// A change of the page's tab removes its form; changes of other parameters of the page's URL keep the form.
function tabOf(search: object): unknown {
  return (search as Readonly<Record<string, unknown>>)['tab']
}
