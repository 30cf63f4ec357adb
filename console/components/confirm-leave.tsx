import { Button, Group, Modal } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import { useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import { mayKeepForm } from './session-recovery.ts'

/** Parameters of a page's URL that open a dialog with a form. */
const OF_DIALOGS = ['new', 'invite', 'group', 'edit', 'server', 'toolset']

/**
 * Asks for confirmation before the user leaves a page with a changed form. When the tab is closed, the
 * browser asks.
 */
export function ConfirmLeave({ isChanged }: { readonly isChanged: boolean }) {
  return useConfirmLeave(isChanged).question
}

/** The same for the form of a dialog, which has `onClose`: asks also before `close` closes it, or Back does. */
export function useConfirmLeave(isChanged: boolean, onClose?: () => void) {
  const { leave, common } = useTexts()
  const [isClosing, setIsClosing] = useState(false)
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next, action }) => {
      // Buttons of a dialog close it by a change of the URL, too.
      const isHistory = action !== 'PUSH' && action !== 'REPLACE'
      // Changes of other parameters keep the form.
      const names = onClose && isHistory ? ['tab', ...OF_DIALOGS] : ['tab']
      return (
        isChanged &&
        (current.pathname !== next.pathname ||
          names.some((name) => parameterOf(current.search, name) !== parameterOf(next.search, name)))
      )
    },
    enableBeforeUnload: () => isChanged && mayKeepForm(),
    withResolver: true,
  })
  const isBlocked = blocker.status === 'blocked'
  const isAsking = isClosing || isBlocked
  const stay = (): void => {
    setIsClosing(false)
    blocker.reset?.()
  }
  const go = (): void => {
    setIsClosing(false)
    if (isBlocked) blocker.proceed()
    else onClose?.()
  }
  return {
    isAsking,
    close: () => (isChanged ? setIsClosing(true) : onClose?.()),
    question: (
      <Modal
        opened={isAsking}
        onClose={stay}
        title={leave.title}
        closeButtonProps={{ 'aria-label': common.close }}
      >
        <p>{common.leaveForm}</p>
        <Group justify="flex-end" mt="lg" gap="sm">
          <Button variant="default" data-autofocus onClick={stay}>
            {leave.stay}
          </Button>
          <Button color="red" onClick={go}>
            {leave.leave}
          </Button>
        </Group>
      </Modal>
    ),
  }
}

function parameterOf(search: object, name: string): unknown {
  return (search as Readonly<Record<string, unknown>>)[name]
}
