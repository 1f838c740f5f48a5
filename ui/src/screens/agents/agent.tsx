import { Outlet } from "react-router";
import { Screen } from "../../parts/screen";

export default function Page() {
  return (
    <Screen title="Agent">
      <Outlet />
    </Screen>
  );
}
